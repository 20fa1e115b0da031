use superstep::Routes;

#[derive(Routes)]
#[route(END)]
enum Next {
    #[route]
    Bare,
    #[route(end)]
    Lower,
    #[route(name = "write")]
    Named,
    #[route("a")]
    #[route("b")]
    Twice,
}

fn main() {}
