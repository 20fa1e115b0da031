//! 300 fields.
use superstep::{IntoUpdate, Persist, Put, Scratch, State};

/// A state with a field of each of six kinds per group of names.
macro_rules! wide {
    ($([$last:ident $append:ident $sum:ident $max:ident $any:ident $topic:ident])*) => {
        /// Wide.
        #[derive(State, Clone)]
        #[allow(missing_docs, missing_debug_implementations)]
        pub struct Wide {
            $(
                pub $last: Option<String>,
                #[state(append)]
                pub $append: Vec<String>,
                #[state(sum)]
                pub $sum: u64,
                #[state(max)]
                pub $max: u64,
                #[state(any)]
                pub $any: String,
                #[state(topic)]
                pub $topic: Vec<u64>,
            )*
        }
    };
}

wide! {
    [f0 f1 f2 f3 f4 f5] [f6 f7 f8 f9 f10 f11] [f12 f13 f14 f15 f16 f17]
    [f18 f19 f20 f21 f22 f23] [f24 f25 f26 f27 f28 f29] [f30 f31 f32 f33 f34 f35]
    [f36 f37 f38 f39 f40 f41] [f42 f43 f44 f45 f46 f47] [f48 f49 f50 f51 f52 f53]
    [f54 f55 f56 f57 f58 f59] [f60 f61 f62 f63 f64 f65] [f66 f67 f68 f69 f70 f71]
    [f72 f73 f74 f75 f76 f77] [f78 f79 f80 f81 f82 f83] [f84 f85 f86 f87 f88 f89]
    [f90 f91 f92 f93 f94 f95] [f96 f97 f98 f99 f100 f101] [f102 f103 f104 f105 f106 f107]
    [f108 f109 f110 f111 f112 f113] [f114 f115 f116 f117 f118 f119] [f120 f121 f122 f123 f124 f125]
    [f126 f127 f128 f129 f130 f131] [f132 f133 f134 f135 f136 f137] [f138 f139 f140 f141 f142 f143]
    [f144 f145 f146 f147 f148 f149] [f150 f151 f152 f153 f154 f155] [f156 f157 f158 f159 f160 f161]
    [f162 f163 f164 f165 f166 f167] [f168 f169 f170 f171 f172 f173] [f174 f175 f176 f177 f178 f179]
    [f180 f181 f182 f183 f184 f185] [f186 f187 f188 f189 f190 f191] [f192 f193 f194 f195 f196 f197]
    [f198 f199 f200 f201 f202 f203] [f204 f205 f206 f207 f208 f209] [f210 f211 f212 f213 f214 f215]
    [f216 f217 f218 f219 f220 f221] [f222 f223 f224 f225 f226 f227] [f228 f229 f230 f231 f232 f233]
    [f234 f235 f236 f237 f238 f239] [f240 f241 f242 f243 f244 f245] [f246 f247 f248 f249 f250 f251]
    [f252 f253 f254 f255 f256 f257] [f258 f259 f260 f261 f262 f263] [f264 f265 f266 f267 f268 f269]
    [f270 f271 f272 f273 f274 f275] [f276 f277 f278 f279 f280 f281] [f282 f283 f284 f285 f286 f287]
    [f288 f289 f290 f291 f292 f293] [f294 f295 f296 f297 f298 f299]
}

#[test]
fn three_hundred_fields() {
    let mut wide = Wide::empty(&());
    let update = Wide::update().f299([1, 2]).f2(4).into_update();
    for put in update.puts() {
        let ix = Wide::field_of(&(), &put.write).unwrap();
        wide.update(&(), ix, &mut std::iter::once(put.clone()), &mut Scratch::default()).unwrap();
    }
    assert_eq!((wide.f299.as_slice(), wide.f2), ([1, 2].as_slice(), 4));
    let mut bytes = Vec::new();
    wide.encode_field(&(), 299, &mut bytes).unwrap();
    let n = 1_000_000;
    let write = Wide::update().f8(1).into_update().puts()[0].write.clone();
    let mut scratch = Scratch::default();
    let start = std::time::Instant::now();
    for _ in 0..n {
        let write = std::hint::black_box(write.clone());
        let ix = Wide::field_of(&(), &write).unwrap();
        wide.update(&(), ix, &mut std::iter::once(Put::merge(write)), &mut scratch).unwrap();
    }
    println!("{:?} per update", start.elapsed() / n);
    assert_eq!(wide.f8, u64::from(n));
}
