//! Server-sent events, read from bytes that may be cut anywhere.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// Its data; several lines are joined.
    pub(crate) data: String,
}

/// Takes bytes as they come and gives events as they are whole.
///
/// An event that is not ended by an empty line is not given, however much of it has come.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return, so a line feed that follows ends nothing.
    after_return: bool,
    after_first_line: bool,
}

impl EventReader {
    /// Takes bytes; what they complete is added to `events`.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut impl Extend<Event>) {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.after_first_line, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.event.name = value.into_owned(),
            b"data" if self.has_data => {
                self.event.data.push('\n');
                self.event.data.push_str(&value);
            }
            b"data" => {
                self.has_data = true;
                self.event.data = value.into_owned();
            }
            // A comment, or a field that is of no use here.
            _ => {}
        }
        None
    }

    /// Events without data are not events.
    fn end_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, EventReader};

    /// All that the format allows, with every kind of line end.
    const STREAM: &[u8] = "\u{feff}: welcome\r\nevent: greet\ndata: h\u{e9}llo\r\ndata:  two\rdata\n\n\r\n\
        event: no data\n\nid: 7\nretry: 10\ndata:{\"a\": \"\u{1F980}\"}\r\rdata: [DONE]\r\n\r\ndata: not whole\n"
        .as_bytes();

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        pieces.into_iter().for_each(|piece| reader.push(piece, &mut events));
        events
    }

    #[test]
    fn every_kind_of_line_is_understood() {
        let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
        let expected = [event("greet", "h\u{e9}llo\n two\n"), event("", "{\"a\": \"\u{1F980}\"}"), event("", "[DONE]")];
        assert_eq!(read([STREAM]), expected);
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_matter() {
        let whole = read([STREAM]);
        assert_eq!(read(STREAM.chunks(1)), whole);
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                assert_eq!(read(pieces), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_stop_the_stream() {
        let events = read([&b"data: \xFF\n\ndata: b\n\n"[..]]);
        assert_eq!(events.iter().map(|event| &*event.data).collect::<Vec<_>>(), ["\u{fffd}", "b"]);
    }
}
