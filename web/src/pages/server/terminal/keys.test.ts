import { describe, expect, it } from 'vitest';
import { sent, withControl } from './keys';

describe('keys of the screen', () => {
  it('sends the arrows that the program asked for', () => {
    expect(sent('↑', false)).toBe('\x1b[A');
    expect(sent('↑', true)).toBe('\x1bOA');
    expect(sent('Esc', true)).toBe('\x1b');
    expect(sent('|', false)).toBe('|');
  });

  it('makes control characters of what is typed while Ctrl is held', () => {
    expect(withControl('c')).toBe('\x03');
    expect(withControl('[')).toBe('\x1b');
    expect(withControl(' ')).toBe('\0');
    expect(withControl('1')).toBe('1');
    expect(withControl('pasted text')).toBe('pasted text');
  });
});
