//! W4: states of 3, 100 and 300 fields, 10 rounds of 5 parallel writers or of one writer that changes one field.
//!
//! The supersteps are 11 ticks and 10 rounds between them.
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::sync::Arc;
use superstep::{CompiledStateGraph, END, START, State, StateGraph};

const ROUNDS: i64 = 10;

type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A state with one last-value int per name, and its two graphs. The names are grouped by the node that writes them.
macro_rules! wide {
    ($state:ident { $($writer:literal: [$($field:ident)*])* }) => {
        #[derive(State, Clone, Default, Serialize, Deserialize)]
        pub struct $state {
            step: i64,
            $($($field: i64,)*)*
        }

        impl $state {
            /// Every field changes in every round.
            fn graph() -> CompiledStateGraph<Self> {
                let writers = [$($writer),*];
                Self::ticking(writers.to_vec())
                    $(
                        .add_node($writer, |_s: Arc<Self>| async move {
                            Self::update()$(.$field(_s.$field + 1))*
                        })
                        .add_edge($writer, "tick")
                    )*
                    .compile()
                    .unwrap()
            }

            /// Only `f0` changes.
            fn one_field_graph() -> CompiledStateGraph<Self> {
                Self::ticking(vec!["w0"])
                    .add_node("w0", |s: Arc<Self>| async move { superstep::Update::new().set(Self::F0, s.f0 + 1) })
                    .add_edge("w0", "tick")
                    .compile()
                    .unwrap()
            }

            fn ticking(writers: Vec<&'static str>) -> StateGraph<Self> {
                let mut graph = StateGraph::<Self>::new();
                graph
                    .add_node("tick", |s: Arc<Self>| async move { superstep::Update::new().set(Self::STEP, s.step + 1) })
                    .add_edge(START, "tick")
                    .add_conditional_edges("tick", move |s: &Self| {
                        if s.step <= ROUNDS { writers.clone() } else { vec![END] }
                    });
                graph
            }

            pub fn runner() -> impl FnMut() -> Run {
                let app = Self::graph();
                move || {
                    let app = app.clone();
                    Box::pin(async move {
                        let out = app.invoke(Self::default()).await.unwrap();
                        $($(assert_eq!(out.$field, ROUNDS);)*)*
                    })
                }
            }

            pub fn one_field_runner() -> impl FnMut() -> Run {
                let app = Self::one_field_graph();
                move || {
                    let app = app.clone();
                    Box::pin(async move {
                        let out = app.invoke(superstep::Update::new().set(Self::STEP, 0)).await.unwrap();
                        assert_eq!(out.f0, ROUNDS);
                    })
                }
            }
        }
    };
}

wide! { Wide3 {
    "w0": [f0]
    "w1": [f1]
    "w2": [f2]
    "w3": []
    "w4": []
} }

wide! { Wide100 {
    "w0": [f0 f5 f10 f15 f20 f25 f30 f35 f40 f45 f50 f55 f60 f65 f70 f75 f80 f85 f90 f95]
    "w1": [f1 f6 f11 f16 f21 f26 f31 f36 f41 f46 f51 f56 f61 f66 f71 f76 f81 f86 f91 f96]
    "w2": [f2 f7 f12 f17 f22 f27 f32 f37 f42 f47 f52 f57 f62 f67 f72 f77 f82 f87 f92 f97]
    "w3": [f3 f8 f13 f18 f23 f28 f33 f38 f43 f48 f53 f58 f63 f68 f73 f78 f83 f88 f93 f98]
    "w4": [f4 f9 f14 f19 f24 f29 f34 f39 f44 f49 f54 f59 f64 f69 f74 f79 f84 f89 f94 f99]
} }

wide! { Wide300 {
    "w0": [
        f0 f5 f10 f15 f20 f25 f30 f35 f40 f45 f50 f55 f60 f65 f70 f75 f80 f85 f90 f95 f100 f105
        f110 f115 f120 f125 f130 f135 f140 f145 f150 f155 f160 f165 f170 f175 f180 f185 f190
        f195 f200 f205 f210 f215 f220 f225 f230 f235 f240 f245 f250 f255 f260 f265 f270 f275
        f280 f285 f290 f295
    ]
    "w1": [
        f1 f6 f11 f16 f21 f26 f31 f36 f41 f46 f51 f56 f61 f66 f71 f76 f81 f86 f91 f96 f101 f106
        f111 f116 f121 f126 f131 f136 f141 f146 f151 f156 f161 f166 f171 f176 f181 f186 f191
        f196 f201 f206 f211 f216 f221 f226 f231 f236 f241 f246 f251 f256 f261 f266 f271 f276
        f281 f286 f291 f296
    ]
    "w2": [
        f2 f7 f12 f17 f22 f27 f32 f37 f42 f47 f52 f57 f62 f67 f72 f77 f82 f87 f92 f97 f102 f107
        f112 f117 f122 f127 f132 f137 f142 f147 f152 f157 f162 f167 f172 f177 f182 f187 f192
        f197 f202 f207 f212 f217 f222 f227 f232 f237 f242 f247 f252 f257 f262 f267 f272 f277
        f282 f287 f292 f297
    ]
    "w3": [
        f3 f8 f13 f18 f23 f28 f33 f38 f43 f48 f53 f58 f63 f68 f73 f78 f83 f88 f93 f98 f103 f108
        f113 f118 f123 f128 f133 f138 f143 f148 f153 f158 f163 f168 f173 f178 f183 f188 f193
        f198 f203 f208 f213 f218 f223 f228 f233 f238 f243 f248 f253 f258 f263 f268 f273 f278
        f283 f288 f293 f298
    ]
    "w4": [
        f4 f9 f14 f19 f24 f29 f34 f39 f44 f49 f54 f59 f64 f69 f74 f79 f84 f89 f94 f99 f104 f109
        f114 f119 f124 f129 f134 f139 f144 f149 f154 f159 f164 f169 f174 f179 f184 f189 f194
        f199 f204 f209 f214 f219 f224 f229 f234 f239 f244 f249 f254 f259 f264 f269 f274 f279
        f284 f289 f294 f299
    ]
} }
