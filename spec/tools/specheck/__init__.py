"""The checks behind `make -C spec check`: vectors, MUST ids, errors, links, OpenAPI."""
