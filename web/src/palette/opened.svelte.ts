/** Whether the palette is open. It is a part of its own, which comes when somebody first opens it. */
class Opened {
  isOpen = $state(false);
}

export const palette = new Opened();

/** The key that people of this system hold for commands. */
export const isApple = /Mac|iP(hone|ad|od)/.test(navigator.platform || navigator.userAgent);
