//! 300 fields.
use superstep::{IntoUpdate, Persist, Put, Scratch, State};
/// Wide.
#[derive(State, Clone)]
#[allow(missing_docs)]
pub struct Wide {
    pub f0: Option<String>,
    #[state(append)]
    pub f1: Vec<String>,
    #[state(sum)]
    pub f2: u64,
    #[state(max)]
    pub f3: u64,
    #[state(any)]
    pub f4: String,
    #[state(topic)]
    pub f5: Vec<u64>,
    pub f6: Option<String>,
    #[state(append)]
    pub f7: Vec<String>,
    #[state(sum)]
    pub f8: u64,
    #[state(max)]
    pub f9: u64,
    #[state(any)]
    pub f10: String,
    #[state(topic)]
    pub f11: Vec<u64>,
    pub f12: Option<String>,
    #[state(append)]
    pub f13: Vec<String>,
    #[state(sum)]
    pub f14: u64,
    #[state(max)]
    pub f15: u64,
    #[state(any)]
    pub f16: String,
    #[state(topic)]
    pub f17: Vec<u64>,
    pub f18: Option<String>,
    #[state(append)]
    pub f19: Vec<String>,
    #[state(sum)]
    pub f20: u64,
    #[state(max)]
    pub f21: u64,
    #[state(any)]
    pub f22: String,
    #[state(topic)]
    pub f23: Vec<u64>,
    pub f24: Option<String>,
    #[state(append)]
    pub f25: Vec<String>,
    #[state(sum)]
    pub f26: u64,
    #[state(max)]
    pub f27: u64,
    #[state(any)]
    pub f28: String,
    #[state(topic)]
    pub f29: Vec<u64>,
    pub f30: Option<String>,
    #[state(append)]
    pub f31: Vec<String>,
    #[state(sum)]
    pub f32: u64,
    #[state(max)]
    pub f33: u64,
    #[state(any)]
    pub f34: String,
    #[state(topic)]
    pub f35: Vec<u64>,
    pub f36: Option<String>,
    #[state(append)]
    pub f37: Vec<String>,
    #[state(sum)]
    pub f38: u64,
    #[state(max)]
    pub f39: u64,
    #[state(any)]
    pub f40: String,
    #[state(topic)]
    pub f41: Vec<u64>,
    pub f42: Option<String>,
    #[state(append)]
    pub f43: Vec<String>,
    #[state(sum)]
    pub f44: u64,
    #[state(max)]
    pub f45: u64,
    #[state(any)]
    pub f46: String,
    #[state(topic)]
    pub f47: Vec<u64>,
    pub f48: Option<String>,
    #[state(append)]
    pub f49: Vec<String>,
    #[state(sum)]
    pub f50: u64,
    #[state(max)]
    pub f51: u64,
    #[state(any)]
    pub f52: String,
    #[state(topic)]
    pub f53: Vec<u64>,
    pub f54: Option<String>,
    #[state(append)]
    pub f55: Vec<String>,
    #[state(sum)]
    pub f56: u64,
    #[state(max)]
    pub f57: u64,
    #[state(any)]
    pub f58: String,
    #[state(topic)]
    pub f59: Vec<u64>,
    pub f60: Option<String>,
    #[state(append)]
    pub f61: Vec<String>,
    #[state(sum)]
    pub f62: u64,
    #[state(max)]
    pub f63: u64,
    #[state(any)]
    pub f64: String,
    #[state(topic)]
    pub f65: Vec<u64>,
    pub f66: Option<String>,
    #[state(append)]
    pub f67: Vec<String>,
    #[state(sum)]
    pub f68: u64,
    #[state(max)]
    pub f69: u64,
    #[state(any)]
    pub f70: String,
    #[state(topic)]
    pub f71: Vec<u64>,
    pub f72: Option<String>,
    #[state(append)]
    pub f73: Vec<String>,
    #[state(sum)]
    pub f74: u64,
    #[state(max)]
    pub f75: u64,
    #[state(any)]
    pub f76: String,
    #[state(topic)]
    pub f77: Vec<u64>,
    pub f78: Option<String>,
    #[state(append)]
    pub f79: Vec<String>,
    #[state(sum)]
    pub f80: u64,
    #[state(max)]
    pub f81: u64,
    #[state(any)]
    pub f82: String,
    #[state(topic)]
    pub f83: Vec<u64>,
    pub f84: Option<String>,
    #[state(append)]
    pub f85: Vec<String>,
    #[state(sum)]
    pub f86: u64,
    #[state(max)]
    pub f87: u64,
    #[state(any)]
    pub f88: String,
    #[state(topic)]
    pub f89: Vec<u64>,
    pub f90: Option<String>,
    #[state(append)]
    pub f91: Vec<String>,
    #[state(sum)]
    pub f92: u64,
    #[state(max)]
    pub f93: u64,
    #[state(any)]
    pub f94: String,
    #[state(topic)]
    pub f95: Vec<u64>,
    pub f96: Option<String>,
    #[state(append)]
    pub f97: Vec<String>,
    #[state(sum)]
    pub f98: u64,
    #[state(max)]
    pub f99: u64,
    #[state(any)]
    pub f100: String,
    #[state(topic)]
    pub f101: Vec<u64>,
    pub f102: Option<String>,
    #[state(append)]
    pub f103: Vec<String>,
    #[state(sum)]
    pub f104: u64,
    #[state(max)]
    pub f105: u64,
    #[state(any)]
    pub f106: String,
    #[state(topic)]
    pub f107: Vec<u64>,
    pub f108: Option<String>,
    #[state(append)]
    pub f109: Vec<String>,
    #[state(sum)]
    pub f110: u64,
    #[state(max)]
    pub f111: u64,
    #[state(any)]
    pub f112: String,
    #[state(topic)]
    pub f113: Vec<u64>,
    pub f114: Option<String>,
    #[state(append)]
    pub f115: Vec<String>,
    #[state(sum)]
    pub f116: u64,
    #[state(max)]
    pub f117: u64,
    #[state(any)]
    pub f118: String,
    #[state(topic)]
    pub f119: Vec<u64>,
    pub f120: Option<String>,
    #[state(append)]
    pub f121: Vec<String>,
    #[state(sum)]
    pub f122: u64,
    #[state(max)]
    pub f123: u64,
    #[state(any)]
    pub f124: String,
    #[state(topic)]
    pub f125: Vec<u64>,
    pub f126: Option<String>,
    #[state(append)]
    pub f127: Vec<String>,
    #[state(sum)]
    pub f128: u64,
    #[state(max)]
    pub f129: u64,
    #[state(any)]
    pub f130: String,
    #[state(topic)]
    pub f131: Vec<u64>,
    pub f132: Option<String>,
    #[state(append)]
    pub f133: Vec<String>,
    #[state(sum)]
    pub f134: u64,
    #[state(max)]
    pub f135: u64,
    #[state(any)]
    pub f136: String,
    #[state(topic)]
    pub f137: Vec<u64>,
    pub f138: Option<String>,
    #[state(append)]
    pub f139: Vec<String>,
    #[state(sum)]
    pub f140: u64,
    #[state(max)]
    pub f141: u64,
    #[state(any)]
    pub f142: String,
    #[state(topic)]
    pub f143: Vec<u64>,
    pub f144: Option<String>,
    #[state(append)]
    pub f145: Vec<String>,
    #[state(sum)]
    pub f146: u64,
    #[state(max)]
    pub f147: u64,
    #[state(any)]
    pub f148: String,
    #[state(topic)]
    pub f149: Vec<u64>,
    pub f150: Option<String>,
    #[state(append)]
    pub f151: Vec<String>,
    #[state(sum)]
    pub f152: u64,
    #[state(max)]
    pub f153: u64,
    #[state(any)]
    pub f154: String,
    #[state(topic)]
    pub f155: Vec<u64>,
    pub f156: Option<String>,
    #[state(append)]
    pub f157: Vec<String>,
    #[state(sum)]
    pub f158: u64,
    #[state(max)]
    pub f159: u64,
    #[state(any)]
    pub f160: String,
    #[state(topic)]
    pub f161: Vec<u64>,
    pub f162: Option<String>,
    #[state(append)]
    pub f163: Vec<String>,
    #[state(sum)]
    pub f164: u64,
    #[state(max)]
    pub f165: u64,
    #[state(any)]
    pub f166: String,
    #[state(topic)]
    pub f167: Vec<u64>,
    pub f168: Option<String>,
    #[state(append)]
    pub f169: Vec<String>,
    #[state(sum)]
    pub f170: u64,
    #[state(max)]
    pub f171: u64,
    #[state(any)]
    pub f172: String,
    #[state(topic)]
    pub f173: Vec<u64>,
    pub f174: Option<String>,
    #[state(append)]
    pub f175: Vec<String>,
    #[state(sum)]
    pub f176: u64,
    #[state(max)]
    pub f177: u64,
    #[state(any)]
    pub f178: String,
    #[state(topic)]
    pub f179: Vec<u64>,
    pub f180: Option<String>,
    #[state(append)]
    pub f181: Vec<String>,
    #[state(sum)]
    pub f182: u64,
    #[state(max)]
    pub f183: u64,
    #[state(any)]
    pub f184: String,
    #[state(topic)]
    pub f185: Vec<u64>,
    pub f186: Option<String>,
    #[state(append)]
    pub f187: Vec<String>,
    #[state(sum)]
    pub f188: u64,
    #[state(max)]
    pub f189: u64,
    #[state(any)]
    pub f190: String,
    #[state(topic)]
    pub f191: Vec<u64>,
    pub f192: Option<String>,
    #[state(append)]
    pub f193: Vec<String>,
    #[state(sum)]
    pub f194: u64,
    #[state(max)]
    pub f195: u64,
    #[state(any)]
    pub f196: String,
    #[state(topic)]
    pub f197: Vec<u64>,
    pub f198: Option<String>,
    #[state(append)]
    pub f199: Vec<String>,
    #[state(sum)]
    pub f200: u64,
    #[state(max)]
    pub f201: u64,
    #[state(any)]
    pub f202: String,
    #[state(topic)]
    pub f203: Vec<u64>,
    pub f204: Option<String>,
    #[state(append)]
    pub f205: Vec<String>,
    #[state(sum)]
    pub f206: u64,
    #[state(max)]
    pub f207: u64,
    #[state(any)]
    pub f208: String,
    #[state(topic)]
    pub f209: Vec<u64>,
    pub f210: Option<String>,
    #[state(append)]
    pub f211: Vec<String>,
    #[state(sum)]
    pub f212: u64,
    #[state(max)]
    pub f213: u64,
    #[state(any)]
    pub f214: String,
    #[state(topic)]
    pub f215: Vec<u64>,
    pub f216: Option<String>,
    #[state(append)]
    pub f217: Vec<String>,
    #[state(sum)]
    pub f218: u64,
    #[state(max)]
    pub f219: u64,
    #[state(any)]
    pub f220: String,
    #[state(topic)]
    pub f221: Vec<u64>,
    pub f222: Option<String>,
    #[state(append)]
    pub f223: Vec<String>,
    #[state(sum)]
    pub f224: u64,
    #[state(max)]
    pub f225: u64,
    #[state(any)]
    pub f226: String,
    #[state(topic)]
    pub f227: Vec<u64>,
    pub f228: Option<String>,
    #[state(append)]
    pub f229: Vec<String>,
    #[state(sum)]
    pub f230: u64,
    #[state(max)]
    pub f231: u64,
    #[state(any)]
    pub f232: String,
    #[state(topic)]
    pub f233: Vec<u64>,
    pub f234: Option<String>,
    #[state(append)]
    pub f235: Vec<String>,
    #[state(sum)]
    pub f236: u64,
    #[state(max)]
    pub f237: u64,
    #[state(any)]
    pub f238: String,
    #[state(topic)]
    pub f239: Vec<u64>,
    pub f240: Option<String>,
    #[state(append)]
    pub f241: Vec<String>,
    #[state(sum)]
    pub f242: u64,
    #[state(max)]
    pub f243: u64,
    #[state(any)]
    pub f244: String,
    #[state(topic)]
    pub f245: Vec<u64>,
    pub f246: Option<String>,
    #[state(append)]
    pub f247: Vec<String>,
    #[state(sum)]
    pub f248: u64,
    #[state(max)]
    pub f249: u64,
    #[state(any)]
    pub f250: String,
    #[state(topic)]
    pub f251: Vec<u64>,
    pub f252: Option<String>,
    #[state(append)]
    pub f253: Vec<String>,
    #[state(sum)]
    pub f254: u64,
    #[state(max)]
    pub f255: u64,
    #[state(any)]
    pub f256: String,
    #[state(topic)]
    pub f257: Vec<u64>,
    pub f258: Option<String>,
    #[state(append)]
    pub f259: Vec<String>,
    #[state(sum)]
    pub f260: u64,
    #[state(max)]
    pub f261: u64,
    #[state(any)]
    pub f262: String,
    #[state(topic)]
    pub f263: Vec<u64>,
    pub f264: Option<String>,
    #[state(append)]
    pub f265: Vec<String>,
    #[state(sum)]
    pub f266: u64,
    #[state(max)]
    pub f267: u64,
    #[state(any)]
    pub f268: String,
    #[state(topic)]
    pub f269: Vec<u64>,
    pub f270: Option<String>,
    #[state(append)]
    pub f271: Vec<String>,
    #[state(sum)]
    pub f272: u64,
    #[state(max)]
    pub f273: u64,
    #[state(any)]
    pub f274: String,
    #[state(topic)]
    pub f275: Vec<u64>,
    pub f276: Option<String>,
    #[state(append)]
    pub f277: Vec<String>,
    #[state(sum)]
    pub f278: u64,
    #[state(max)]
    pub f279: u64,
    #[state(any)]
    pub f280: String,
    #[state(topic)]
    pub f281: Vec<u64>,
    pub f282: Option<String>,
    #[state(append)]
    pub f283: Vec<String>,
    #[state(sum)]
    pub f284: u64,
    #[state(max)]
    pub f285: u64,
    #[state(any)]
    pub f286: String,
    #[state(topic)]
    pub f287: Vec<u64>,
    pub f288: Option<String>,
    #[state(append)]
    pub f289: Vec<String>,
    #[state(sum)]
    pub f290: u64,
    #[state(max)]
    pub f291: u64,
    #[state(any)]
    pub f292: String,
    #[state(topic)]
    pub f293: Vec<u64>,
    pub f294: Option<String>,
    #[state(append)]
    pub f295: Vec<String>,
    #[state(sum)]
    pub f296: u64,
    #[state(max)]
    pub f297: u64,
    #[state(any)]
    pub f298: String,
    #[state(topic)]
    pub f299: Vec<u64>,
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
