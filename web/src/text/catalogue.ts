// What the compiled texts (build/messages.mjs) share: the language that is spoken, and what has come of it.

/** A message with tags: text, and pairs of a tag and the text in it. */
export type Rich<T extends string> = (string | [tag: T, text: string])[];

/** The messages of an area in another language, in the order of the English ones. */
type Translation = readonly (string | ((values: never) => unknown))[];

/** Makes them with what messages need: how numbers are written, and which form of a word a number takes. */
export type Translate = (write: typeof n, rules: typeof rule) => Translation;

type Load = () => Promise<{ default: Translate }>;

interface Area {
  loads: Record<string, Load>;
  translation?: Translation;
}

const areas: Area[] = [];
const spoken = { language: 'en', locale: 'en-US' };
let count = new Intl.NumberFormat(spoken.locale);

/** Says in which language texts are, and by whose customs numbers and times are written. Before the first text is shown. */
export function speak(language: string, locale: string): void {
  if (language !== spoken.language) for (const area of areas) delete area.translation;
  spoken.language = language;
  spoken.locale = locale;
  count = new Intl.NumberFormat(locale);
}

/** The locale for `Intl`: `en-GB`. */
export function locale(): string {
  return spoken.locale;
}

/** An area of texts. Returns what gives a message in the language that is spoken: undefined stands for the English one. */
export function area(loads: Record<string, Load>) {
  const own: Area = { loads };
  areas.push(own);
  return <T>(index: number, values?: object): T | undefined => {
    const message = own.translation?.[index];
    return (typeof message === 'function' ? message(values as never) : message) as T | undefined;
  };
}

/** Resolves when all areas that are here are in the language that is spoken. */
export async function translated(): Promise<void> {
  await Promise.all(
    areas.map(async (area) => {
      const load = area.loads[spoken.language];
      if (load && !area.translation) area.translation = (await load()).default(n, rule);
    }),
  );
}

/** A number in a message. */
export function n(value: number): string {
  return count.format(value);
}

/** Which form of a word a number takes in a language. */
export function rule(language: string): (value: number) => Intl.LDMLPluralRule {
  let rules: Intl.PluralRules | undefined;
  return (value) => (rules ??= new Intl.PluralRules(language)).select(value);
}
