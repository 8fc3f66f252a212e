/* What another project does first: a configuration that is refused. */
#include <cipherlane/cipherlane.h>
#include <stdio.h>

int main(void)
{
    cl_error error;
    cl_client *client = NULL;
    cl_config *config = cl_config_new();
    cl_code code = cl_client_new(&client, config, &error);
    (void)printf("%s %s: %s\n", cl_version(), cl_code_name(code), error.message);
    cl_config_free(config);
    return code == CL_CONFIGURATION_INVALID && client == NULL ? 0 : 1;
}
