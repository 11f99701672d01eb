import { describe, expect, it } from 'vitest';
import { distinct, Recall } from './recall';

const past = ['uptime', 'df -h', 'ls'];

describe('recall', () => {
  it('goes back from an empty field, stops at the oldest, and comes forth to the empty field', () => {
    const recall = new Recall();

    expect(recall.step(past, '', 1)).toBe('uptime');
    expect(recall.step(past, 'uptime', 1)).toBe('df -h');
    expect(recall.step(past, 'df -h', 1)).toBe('ls');
    expect(recall.step(past, 'ls', 1)).toBe('ls');
    expect(recall.step(past, 'ls', -1)).toBe('df -h');
    expect(recall.step(past, 'df -h', -1)).toBe('uptime');
    expect(recall.step(past, 'uptime', -1)).toBe('');
  });

  it('leaves the keys alone when something was written', () => {
    const recall = new Recall();
    recall.step(past, '', 1);

    expect(recall.step(past, 'uptime -p', 1)).toBeNull();
    expect(recall.step(past, '', -1)).toBeNull();
  });

  it('starts with the newest after the field was emptied', () => {
    const recall = new Recall();
    recall.step(past, '', 1);
    recall.step(past, 'uptime', 1);

    expect(recall.step(past, '', 1)).toBe('uptime');
    expect(recall.step([], '', 1)).toBe('');
  });

  it('knows each command once', () => {
    expect(distinct(['a', 'b', 'a'])).toEqual(['a', 'b']);
  });
});
