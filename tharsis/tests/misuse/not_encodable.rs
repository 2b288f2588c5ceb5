use tharsis::prelude::*;

struct Secret;

#[remote]
fn reveal(secret: Secret) -> u64 {
    let _ = secret;
    1
}

fn main() {
    reveal::remote(Secret);
}
