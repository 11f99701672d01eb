use proptest::prelude::*;

use super::*;

const O: Stream = Stream::Stdout;
const E: Stream = Stream::Stderr;

fn piece(offset: u64, stream: Stream, text: &str) -> Next {
    Next::Piece(Piece { offset, stream, text: text.to_owned() })
}

#[test]
fn both_streams_are_kept_in_order_of_arrival() {
    let mut output = Output::default();
    output.add(O, "one ", None);
    output.add(E, "two ", None);
    output.add(O, "three", None);

    let rendered = output.to_stored().render();

    assert_eq!(rendered.output, "one two three");
    assert_eq!((rendered.stdout.as_str(), rendered.stderr.as_str()), ("one three", "two "));
    assert!(!output.is_cut());
}

#[test]
fn a_repeated_piece_is_kept_once() {
    let mut output = Output::default();
    output.add(O, "abc", Some(0));
    output.add(O, "abc", Some(0));
    output.add(O, "bcde", Some(1));
    output.add(E, "!", Some(5));

    assert_eq!(output.to_stored().render().output, "abcde!");
    assert_eq!(output.end(), 6);
}

#[test]
fn a_long_output_keeps_its_beginning_and_its_end() {
    let mut output = Output::default();
    for number in 0..300_000 {
        output.add(O, &format!("{number:09}\n"), None);
    }

    let rendered = output.to_stored().render();

    let left_out = 3_000_000 - 2 * HALF as u64;
    assert!(output.is_cut());
    assert!(rendered.output.starts_with("000000000\n000000001\n"));
    assert!(rendered.output.ends_with("000299998\n000299999\n"));
    assert!(rendered.output.contains(&format!("\n[... {left_out} bytes left out ...]\n")));
    assert_eq!(rendered.output, rendered.stdout);
    assert_eq!(rendered.stderr, "");
}

#[test]
fn a_mebibyte_is_kept_whole_whatever_character_crosses_its_middle() {
    for (ascii, character) in [(0, "x"), (1, "ä"), (1, "€"), (1_026, "😀"), (1_025, "€ä€")] {
        let mut whole = "x".repeat(ascii);
        while whole.len() + character.len() <= 2 * HALF {
            whole.push_str(character);
        }
        whole.push_str(&"x".repeat(2 * HALF - whole.len()));
        let (mut at_once, mut in_pieces) = (Output::default(), Output::default());
        at_once.add(O, &whole, None);
        let mut rest = whole.as_str();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(1_000));
            in_pieces.add(O, piece, None);
            rest = more;
        }

        for output in [&at_once, &in_pieces] {
            assert!(!output.is_cut(), "{character}");
            assert!(output.to_stored().text == whole, "{character}");
        }
        at_once.add(O, "y", None);
        assert!(at_once.is_cut(), "{character}");
        assert!(at_once.to_stored().text.len() <= 2 * HALF, "{character}");
    }
}

#[test]
fn a_gap_of_the_sender_is_reported() {
    let mut output = Output::default();
    output.add(O, "begin", Some(0));
    output.add(O, "end", Some(1_000));

    assert_eq!(output.to_stored().render().output, "begin\n[... 995 bytes left out ...]\nend");
    assert_eq!(output.end(), 1_003);
}

#[test]
fn a_reader_continues_where_it_was_and_learns_what_it_missed() {
    let mut output = Output::default();
    output.add(O, "abc", None);
    let (first, place) = output.read(0, 100);
    assert_eq!((first, place), (vec![piece(0, O, "abc")], 3));
    assert_eq!(output.read(3, 100), (vec![], 3));

    output.add(E, "later", Some(13));
    let (second, place) = output.read(place, 100);

    assert_eq!(second, [Next::LeftOut(10), piece(13, E, "later")]);
    assert_eq!(place, 18);
}

#[test]
fn a_reader_gets_at_most_what_it_asked_for_and_no_partial_character() {
    let mut output = Output::default();
    output.add(O, "aäbäc", None);

    let (first, place) = output.read(0, 5);
    let (second, end) = output.read(place, 5);

    assert_eq!(first, [piece(0, O, "aäb")]);
    assert_eq!(second, [piece(4, O, "äc")]);
    assert_eq!(end, 7);
}

#[test]
fn a_flood_of_tiny_pieces_is_bounded() {
    let mut output = Output::default();
    for number in 0..100_000_u64 {
        output.add(if number % 2 == 0 { O } else { E }, "x", None);
    }

    let kept = output.pieces().count();

    assert!(kept <= 2 * MAX_PIECES, "{kept}");
    assert!(output.is_cut());
}

#[test]
fn an_output_with_little_room_keeps_its_beginning_and_its_end() {
    const ROOM: usize = 64 * 1024;
    let (mut lines, mut tiny) = (Output::default(), Output::default());
    for number in 0..50_000_u64 {
        lines.add_within(ROOM, O, &format!("{number:09}\n"), None);
        tiny.add_within(ROOM, if number % 2 == 0 { O } else { E }, "x", None);
    }

    for output in [&lines, &tiny] {
        let taken = output.head.size() + output.tail.size();
        assert!((ROOM / 2..=ROOM + LEAST_TAIL).contains(&taken), "{taken}");
        assert!(output.is_cut());
        assert_eq!(output.read(0, usize::MAX).1, output.end(), "a reader comes to the end");
    }
    let rendered = lines.to_stored().render().output;
    assert!(rendered.starts_with("000000000\n000000001\n") && rendered.ends_with("000049998\n000049999\n"));
}

#[test]
fn a_long_message_takes_no_more_memory_than_what_is_kept_of_it() {
    let mut output = Output::default();

    output.add(O, &"x".repeat(8 * HALF), None);

    let taken: usize = output.pieces().map(|piece| piece.text.capacity()).sum();
    assert_eq!(taken, 2 * HALF);
    // What comes takes the room of what goes.
    assert_eq!(output.size_with(&"x".repeat(HALF)), 2 * HALF + 4 * PIECE_BYTES);
    assert_eq!(output.end(), 8 * HALF as u64);
}

#[test]
fn an_output_with_room_for_its_text_is_kept_as_it_is() {
    let (mut output, mut whole) = (Output::default(), Output::default());
    for text in ["a".repeat(HALF - 1), "bc".repeat(HALF / 4), "d".repeat(HALF / 2), "ä".repeat(HALF / 3)] {
        let room = output.size_with(&text);
        output.add_within(room, O, &text, None);
        whole.add(O, &text, None);

        assert!(output == whole, "{} bytes", output.end());
    }
}

proptest! {
    /// For any output in any pieces, the first and the last half mebibyte are kept, exact to the character, and reading in
    /// portions of any size returns the same text.
    #[test]
    fn any_output_keeps_its_ends(
        pieces in proptest::collection::vec((any::<bool>(), "[a-zä☃]{0,4000}", 1_usize..200), 0..8),
        portion in 1_usize..100_000,
    ) {
        let (mut output, mut whole) = (Output::default(), String::new());
        for (is_stderr, text, times) in &pieces {
            for _ in 0..*times {
                output.add(if *is_stderr { E } else { O }, text, None);
                whole.push_str(text);
            }
        }

        let (mut place, mut read, mut left_out) = (0, Vec::new(), 0);
        loop {
            let (found, next) = output.read(place, portion);
            if next == place { break; }
            place = next;
            for item in found {
                match item {
                    Next::LeftOut(bytes) => left_out += bytes,
                    Next::Piece(piece) => read.push(piece),
                }
            }
        }

        prop_assert_eq!(place, whole.len() as u64);
        for piece in &read {
            let at = piece.offset as usize;
            prop_assert_eq!(whole.get(at..at + piece.text.len()), Some(piece.text.as_str()));
        }
        let kept: usize = read.iter().map(|piece| piece.text.len()).sum();
        prop_assert_eq!(kept as u64 + left_out, whole.len() as u64);
        // A part of a character is not kept, and the longest one here has three bytes.
        if whole.len() <= 2 * HALF { prop_assert_eq!(left_out, 0); } else { prop_assert!(kept + 2 >= 2 * HALF); }
        let stored = output.to_stored();
        prop_assert_eq!(stored.clone().into_output().to_stored().render(), stored.render());
    }
}
