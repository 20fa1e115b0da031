use superstep::Routes;

#[derive(Routes)]
struct Next {
    way: u8,
}

fn main() {}
