//! Builds OpenSSL from the sources in the crate `openssl-src` into the folder named: `include/` and `lib/libcrypto.a`.

use std::{env, path::Path, process::exit};

fn main() {
    let Some(folder) = env::args().nth(1) else {
        eprintln!("usage: openssl-for-wheels FOLDER");
        exit(2);
    };
    let machine = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    env::set_var("OPT_LEVEL", "3"); // as a build script of cargo would have it
    openssl_src::Build::new()
        .out_dir(Path::new(&folder))
        .target(&machine)
        .host(&machine)
        .build();
}
