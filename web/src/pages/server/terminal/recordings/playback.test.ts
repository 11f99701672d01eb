// @vitest-environment node
import { describe, expect, it } from 'vitest';
import { Playback, Timeline } from './playback';

describe('the times of a recording that is played', () => {
  it('are those of the recording where nothing waits long', () => {
    const timeline = new Timeline([0.5, 1, 3]);

    expect([timeline.at, timeline.duration, timeline.isShortened]).toEqual([[0.5, 1, 3], 3, false]);
  });

  it('have no pause of more than 2 s, also none before the first output', () => {
    const timeline = new Timeline([10, 11, 3611, 3611.5]);

    expect(timeline.at).toEqual([2, 3, 5, 5.5]);
    expect([timeline.duration, timeline.isShortened]).toEqual([5.5, true]);
  });

  it('say how many events have been shown', () => {
    const timeline = new Timeline([0, 1, 1, 2]);

    expect([-1, 0, 0.9, 1, 1.5, 2, 99].map((time) => timeline.countAt(time))).toEqual([0, 1, 1, 3, 3, 4, 4]);
  });

  it('lead back to the time of the recording', () => {
    const timeline = new Timeline([1, 61, 62]);

    expect([0.5, 1, 2, 3, 3.5, 4, 99].map((time) => timeline.originalAt(time))).toEqual([0.5, 1, 2, 61, 61.5, 62, 62]);
  });

  it('are none where nothing was shown', () => {
    const timeline = new Timeline([]);

    expect([timeline.duration, timeline.countAt(5), timeline.originalAt(5)]).toEqual([0, 0, 0]);
  });
});

describe('the clock of a player', () => {
  it('stands until it is started, and when it is paused', () => {
    const playback = new Playback(10);
    playback.advance(500);
    expect(playback.position).toBe(0);

    playback.play();
    playback.advance(500);
    playback.pause();
    playback.advance(500);

    expect(playback.position).toBe(0.5);
  });

  it('runs faster where that is chosen', () => {
    const playback = new Playback(10);
    playback.play();
    playback.speed = 4;

    playback.advance(500);

    expect(playback.position).toBe(2);
  });

  it('stops at the end, and begins again from there', () => {
    const playback = new Playback(1);
    playback.play();
    playback.advance(900);
    expect([playback.isPlaying, playback.hasEnded]).toEqual([true, false]);

    playback.advance(900);
    expect([playback.position, playback.isPlaying, playback.hasEnded]).toEqual([1, false, true]);

    playback.play();
    expect([playback.position, playback.isPlaying]).toEqual([0, true]);
  });

  it('goes to any time within the recording, and plays on from there', () => {
    const playback = new Playback(10);
    playback.play();

    playback.seek(4);
    playback.advance(1000);
    expect(playback.position).toBe(5);

    for (const [wanted, found] of [
      [-5, 0],
      [99, 10],
      [NaN, 10],
    ] as const) {
      playback.seek(wanted);
      expect(playback.position).toBe(found);
    }
  });

  it('does not jump where the page was hidden, or the clock was put back', () => {
    const playback = new Playback(3600);
    playback.play();

    playback.advance(600_000);
    expect(playback.position).toBe(1);
    playback.advance(-5000);
    expect(playback.position).toBe(1);
  });

  it('has nothing to play where nothing was shown', () => {
    const playback = new Playback(0);

    playback.play();

    expect([playback.isPlaying, playback.hasEnded]).toEqual([false, true]);
  });
});
