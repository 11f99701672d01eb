// Which language the interface speaks: what was chosen in this browser, else the first of the browser's that there is.
import { LANGUAGES } from '#messages/languages';
import { speak, translated } from './catalogue';
import { kept, keep } from './kept';

export type Language = (typeof LANGUAGES)[number];

const CHOSEN = 'language';

/** What is chosen, and for `Intl` the same with the region that its reader is used to: `en-GB`. */
export function spokenOf(chosen: string | null, wanted: readonly string[]): { language: Language; locale: string } {
  const known = (tag: string) => LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
  const language = (chosen === null ? undefined : known(chosen)) ?? wanted.map(known).find(Boolean) ?? 'en';
  return { language, locale: wanted.find((tag) => known(tag) === language) ?? language };
}

/** The language that was chosen in this browser; null where the browser's own decide. */
export function chosenLanguage(): Language | null {
  const chosen = kept(CHOSEN);
  return LANGUAGES.find((language) => language === chosen) ?? null;
}

/** Speaks another language: the page is loaded again, since its texts are written when they are shown. */
export function chooseLanguage(language: Language | null): void {
  keep(CHOSEN, language);
  location.reload();
}

/** A language by its own name: `Deutsch`. */
export function nameOf(language: Language): string {
  const name = new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}

/** Before the first text is shown. */
export async function startLanguage(): Promise<void> {
  const { language, locale } = spokenOf(chosenLanguage(), navigator.languages);
  speak(language, locale);
  document.documentElement.lang = language;
  // Without them it speaks English; the next part that is loaded asks for them again.
  await translated().catch((error: unknown) => console.warn(error));
}
