export interface Question {
  title: string;
  text: string;
  /** What exactly is done: shown whole, as it is. */
  code?: string;
  /** What the button says: the verb of what is done. */
  action: string;
  danger?: boolean;
  /** A word that must be typed, for what cannot be undone. */
  type?: string;
}

interface Asked extends Question {
  answer: (yes: boolean) => void;
}

/** Asks before something is done that hurts. One question at a time; Frame shows it. */
class Confirm {
  asked = $state.raw<Asked | null>(null);

  ask(question: Question): Promise<boolean> {
    this.asked?.answer(false);
    return new Promise((answer) => (this.asked = { ...question, answer }));
  }

  settle(yes: boolean): void {
    this.asked?.answer(yes);
    this.asked = null;
  }
}

export const confirm = new Confirm();
