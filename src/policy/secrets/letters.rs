//! Letters, as a person sees them: accents off, letters that only look like Latin ones made Latin, and
//! those that nobody sees left out.
//!
//! A small part of what Unicode calls compatibility and confusables (UAX #15, UTS #39): enough that a
//! word can't be hidden in the usual ways. No table is complete here; what is missed is a form that is
//! asked, as it would be without this page.

/// A text without letters that nobody sees, and with those of another width or style made plain. Case
/// and accents stay.
pub(super) fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .filter(|letter| !is_invisible(*letter))
        .map(unstyled)
}

/// The small Latin letters of one letter, without its accents; others only in lower case.
pub(super) fn small(letter: char, into: &mut String) {
    for letter in letter.to_lowercase() {
        match base(letter) {
            Some(base) => into.push_str(base),
            None => into.push(letter),
        }
    }
}

/// A word in which letters of other alphabets look like Latin ones, as it looks.
pub(super) fn latin(word: &str) -> String {
    word.chars()
        .map(|letter| lookalike(letter).unwrap_or(letter))
        .collect()
}

/// A word in which digits and signs stand for letters, as it is meant.
pub(super) fn unleeted(word: &str) -> String {
    word.chars()
        .map(|letter| match letter {
            '0' => 'o',
            '1' => 'i',
            '3' => 'e',
            '4' | '@' => 'a',
            '5' | '$' => 's',
            '7' => 't',
            other => other,
        })
        .collect()
}

/// Whether some digit or sign of a word can stand for a letter.
pub(super) fn is_leeted(word: &str) -> bool {
    word.contains(['0', '1', '3', '4', '@', '5', '$', '7'])
}

/// Whether a letter belongs to a script that is written without spaces between words.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}'      // Thai, Lao
        | '\u{1100}'..='\u{11ff}'    // Hangul, whose words carry their endings with them
        | '\u{3040}'..='\u{30ff}'    // Hiragana, Katakana
        | '\u{3130}'..='\u{318f}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'    // Han
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}')
}

/// Zero width, soft hyphens, marks that turn or join text, variation selectors, tags, and accents that
/// stand alone.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
        | '\u{300}'..='\u{36f}')
}

/// A letter in full width, in a circle, or in a mathematical style, as the plain one.
fn unstyled(letter: char) -> char {
    let code = u32::from(letter);
    let nth = |first: char, place: u32| char::from_u32(u32::from(first) + place);
    let plain = match code {
        0xff01..=0xff5e => nth('!', code - 0xff01),
        0x3000 => Some(' '),
        0x24b6..=0x24cf => nth('A', code - 0x24b6),
        0x24d0..=0x24e9 => nth('a', code - 0x24d0),
        0x1f130..=0x1f149 => nth('A', code - 0x1f130),
        0x1f150..=0x1f169 => nth('A', code - 0x1f150),
        0x1f170..=0x1f189 => nth('A', code - 0x1f170),
        // Thirteen styles of both cases, one after the other; a few of their places are elsewhere.
        0x1d400..=0x1d6a3 => match (code - 0x1d400) % 52 {
            place @ 0..26 => nth('A', place),
            place => nth('a', place - 26),
        },
        0x1d7ce..=0x1d7ff => nth('0', (code - 0x1d7ce) % 10),
        _ => match letter {
            'ℎ' => Some('h'),
            'ℯ' => Some('e'),
            'ℊ' | 'ɡ' => Some('g'),
            'ℴ' => Some('o'),
            'ⅰ' => Some('i'),
            'ⅼ' => Some('l'),
            'ⅽ' => Some('c'),
            'ⅾ' => Some('d'),
            'ⅿ' => Some('m'),
            _ => None,
        },
    };
    plain.unwrap_or(letter)
}

/// A small Latin letter without its accent.
fn base(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à'..='å' | 'ā'..='ą' | 'ǎ' | 'ạ'..='ặ' => "a",
        'æ' => "ae",
        'ç' | 'ć'..='č' => "c",
        'ď'..='đ' | 'ð' => "d",
        'è'..='ë' | 'ē'..='ě' | 'ẹ'..='ệ' => "e",
        'ĝ'..='ģ' | 'ǧ' => "g",
        'ĥ'..='ħ' => "h",
        'ì'..='ï' | 'ĩ'..='ı' | 'ỉ'..='ị' => "i",
        'ĵ' => "j",
        'ķ' | 'ĸ' => "k",
        'ĺ'..='ł' => "l",
        'ñ' | 'ń'..='ŋ' => "n",
        'ò'..='ö' | 'ø' | 'ō'..='ő' | 'ơ' | 'ọ'..='ợ' => "o",
        'œ' => "oe",
        'ŕ'..='ř' => "r",
        'ś'..='š' | 'ș' | 'ſ' => "s",
        'ß' => "ss",
        'ţ'..='ŧ' | 'ț' => "t",
        'ù'..='ü' | 'ũ'..='ų' | 'ư' | 'ụ'..='ự' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' | 'ỳ'..='ỹ' => "y",
        'ź'..='ž' => "z",
        'ё' => "е",
        'ά' => "α",
        'έ' => "ε",
        'ή' => "η",
        'ί' => "ι",
        'ό' => "ο",
        'ύ' => "υ",
        'ώ' => "ω",
        // What Turkish puts over a capital I, in lower case.
        '\u{307}' => "",
        _ => return None,
    })
}

/// The Latin letter that a small letter of another alphabet looks like.
fn lookalike(letter: char) -> Option<char> {
    Some(match letter {
        'а' | 'α' | 'ɑ' | 'ᴀ' => 'a',
        'Ь' | 'ь' | 'в' | 'β' | 'ʙ' => 'b',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ɗ' | 'ᴅ' => 'd',
        'е' | 'є' | 'ε' | 'ҽ' | 'ᴇ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'һ' | 'հ' | 'н' | 'ʜ' => 'h',
        'і' | 'ι' | 'ɪ' => 'i',
        'ј' | 'ᴊ' => 'j',
        'к' | 'κ' | 'ᴋ' => 'k',
        'ӏ' | 'ʟ' => 'l',
        'м' | 'ᴍ' => 'm',
        'п' | 'η' | 'ո' | 'ɴ' => 'n',
        'о' | 'ο' | 'օ' | 'σ' | 'ᴏ' => 'o',
        'р' | 'ρ' | 'ᴘ' => 'p',
        'ԛ' => 'q',
        'г' | 'ʀ' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' | 'ᴛ' => 't',
        'υ' | 'ս' | 'ᴜ' => 'u',
        'ν' | 'ѵ' | 'ᴠ' => 'v',
        'ԝ' | 'ω' | 'ѡ' | 'ш' | 'ᴡ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' | 'ʏ' => 'y',
        'ᴢ' => 'z',
        _ => return None,
    })
}
