//! What the keys do. Pure.

use crossterm::event::{KeyCode, KeyEvent};

use super::model::{Model, Sort};
use crate::commands::prompt::is_control;

/// Whether the table stays.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Stay,
    End,
}

/// Longer ones find nothing.
const MAX_FILTER: usize = 100;

pub fn press(model: &mut Model, key: KeyEvent) -> Step {
    if is_control(key) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Step::End,
            _ => Step::Stay,
        };
    }
    if model.is_typing {
        typed(model, key.code)
    } else {
        return pressed(model, key.code);
    }
    Step::Stay
}

fn typed(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Enter => model.is_typing = false,
        KeyCode::Esc => {
            model.is_typing = false;
            model.filter.clear();
        }
        KeyCode::Backspace => drop(model.filter.pop()),
        KeyCode::Char(character) if model.filter.len() < MAX_FILTER => model.filter.push(character),
        _ => {}
    }
}

fn pressed(model: &mut Model, code: KeyCode) -> Step {
    let page = isize::try_from(model.height.saturating_sub(1)).unwrap_or(1).max(1);
    match code {
        KeyCode::Char('q') => return Step::End,
        KeyCode::Esc if model.filter.is_empty() => model.marked = None,
        KeyCode::Esc => model.filter.clear(),
        KeyCode::Char('/') => model.is_typing = true,
        KeyCode::Char('r') => model.is_reversed = !model.is_reversed,
        KeyCode::Down | KeyCode::Char('j') => model.step(1),
        KeyCode::Up | KeyCode::Char('k') => model.step(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => model.step(page),
        KeyCode::PageUp => model.step(-page),
        KeyCode::Home => model.step(isize::MIN),
        KeyCode::End => model.step(isize::MAX),
        KeyCode::Char(letter) => {
            if let Some(sort) = sort_of(letter) {
                // The same key again turns the order.
                model.is_reversed = model.sort == sort && !model.is_reversed;
                model.sort = sort;
            }
        }
        _ => {}
    }
    Step::Stay
}

fn sort_of(letter: char) -> Option<Sort> {
    Some(match letter {
        'c' => Sort::Cpu,
        'm' => Sort::Memory,
        'd' => Sort::Disk,
        'l' => Sort::Load,
        'i' => Sort::In,
        'o' => Sort::Out,
        'u' => Sort::Uptime,
        'n' => Sort::Name,
        's' => Sort::Status,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn a_filter_is_typed_without_sorting() {
        let mut model = Model::new(Sort::Cpu);

        for code in [KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('m'), KeyCode::Enter] {
            assert_eq!(press(&mut model, key(code)), Step::Stay);
        }

        assert_eq!((model.filter.as_str(), model.sort, model.is_typing), ("qm", Sort::Cpu, false));
        assert_eq!(press(&mut model, key(KeyCode::Char('q'))), Step::End);
    }

    #[test]
    fn characters_of_alt_gr_are_typed() {
        let mut model = Model::new(Sort::Cpu);
        press(&mut model, key(KeyCode::Char('/')));

        let typed = KeyEvent::new(KeyCode::Char('@'), KeyModifiers::CONTROL | KeyModifiers::ALT);
        press(&mut model, typed);

        assert_eq!(model.filter, "@");
    }

    #[test]
    fn the_same_key_again_turns_the_order() {
        let mut model = Model::new(Sort::Cpu);

        press(&mut model, key(KeyCode::Char('m')));
        assert_eq!((model.sort, model.is_reversed), (Sort::Memory, false));
        press(&mut model, key(KeyCode::Char('m')));
        assert!(model.is_reversed);
        press(&mut model, key(KeyCode::Char('n')));
        assert!(!model.is_reversed);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(press(&mut model, interrupt), Step::End);
    }
}
