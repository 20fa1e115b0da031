use superstep::Routes;

#[derive(Routes)]
enum Next {}

fn main() {}
