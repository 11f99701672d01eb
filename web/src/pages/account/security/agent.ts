// What a `User-Agent` header says, in words. It is a guess for a person, nothing is decided by it.
import * as m from '#messages/security';

const BROWSERS: [RegExp, string | (() => string)][] = [
  [/\bEdg(?:A|iOS)?\/(\d+)/, 'Edge'],
  [/\bOPR\/(\d+)/, 'Opera'],
  [/\bSamsungBrowser\/(\d+)/, 'Samsung Internet'],
  [/\bVivaldi\/(\d+)/, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox'],
  [/\bHeadlessChrome\/(\d+)/, m.headless],
  [/\b(?:Chrome|CriOS)\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+)[\d.]*.*\bSafari\//, 'Safari'],
];

const SYSTEMS: [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bFreeBSD\b/, 'FreeBSD'],
  [/\bLinux\b|\bX11\b/, 'Linux'],
];

const PROGRAMS: [RegExp, string | (() => string)][] = [
  [/^curl\/([\d.]+)/, 'curl'],
  [/^Wget\/([\d.]+)/, 'Wget'],
  [/^python-requests\/([\d.]+)/, 'Python requests'],
  [/^python-httpx\/([\d.]+)/, 'Python httpx'],
  [/^Python-urllib\/([\d.]+)/, 'Python urllib'],
  [/^Go-http-client\/([\d.]+)/, m.goProgram],
  [/^PostmanRuntime\/([\d.]+)/, 'Postman'],
  [/^HTTPie\/([\d.]+)/, 'HTTPie'],
  [/^PowerShell\/([\d.]+)|\bWindowsPowerShell\/([\d.]+)/, 'PowerShell'],
];

export interface Program {
  /** `Firefox 132 on Linux`. */
  name: string;
  isBrowser: boolean;
  isPhone: boolean;
}

/** A name is what everybody calls it, or a message. */
function versioned(name: string | (() => string), version: string | undefined): string {
  return `${typeof name === 'string' ? name : name()} ${version}`;
}

export function programOf(userAgent: string): Program {
  const text = userAgent.trim();
  const system = SYSTEMS.find(([pattern]) => pattern.test(text))?.[1];
  const isPhone = system === 'iPhone' || (system === 'Android' && /\bMobile\b/.test(text));
  for (const [pattern, name] of BROWSERS) {
    const found = pattern.exec(text);
    if (found)
      return {
        name: system ? m.onSystem({ browser: versioned(name, found[1]), system }) : versioned(name, found[1]),
        isBrowser: true,
        isPhone,
      };
  }
  for (const [pattern, name] of PROGRAMS) {
    const found = pattern.exec(text);
    if (found) return { name: versioned(name, found[1] ?? found[2]), isBrowser: false, isPhone: false };
  }
  if (!text) return { name: m.unnamed(), isBrowser: false, isPhone: false };
  const short = text.length > 60 ? `${text.slice(0, 59)}…` : text;
  return { name: short, isBrowser: false, isPhone: false };
}
