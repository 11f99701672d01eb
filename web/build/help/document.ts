import { Marked, Renderer, type Token, type Tokens } from 'marked';
import { addressOf, slugOf, targetOf, type Target } from './address.ts';

export interface Heading {
  id: string;
  text: string;
  depth: number;
}

/** What stands under one heading, for the search. The first section of a document has no heading of its own. */
export interface Section {
  id: string;
  heading: string;
  text: string;
}

export interface Link {
  /** The document that has it. */
  from: string;
  href: string;
  target: Target;
}

/** A document, ready to be shown. */
export interface Rendered {
  title: string;
  html: string;
  headings: Heading[];
  sections: Section[];
  links: Link[];
  /** Images that it shows, from the root of the repository. */
  images: string[];
}

/** Gives the address under which a file of the repository is served as an image. */
export type ImageAddress = (file: string) => string;

/** A block of Markdown, and the file that its links count from: a page may have parts of another document. */
export interface Block {
  token: Token;
  from: string;
}

const reader = new Marked({ gfm: true });

export function blocksOf(file: string, markdown: string): Block[] {
  return reader.lexer(markdown).map((token) => ({ token, from: file }));
}

export function render(blocks: Block[], imageAddress: ImageAddress): Rendered {
  const writer = new Writer(imageAddress);
  const html = blocks.map((block) => writer.write(block)).join('');
  const { headings, links, images } = writer;
  const title = headings.find(({ depth }) => depth === 1)?.text ?? '';
  return { title, html, headings, links, images, sections: sectionsOf(blocks, headings) };
}

export function escape(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** What somebody reads of inline Markdown. */
export function plain(tokens: Token[] | undefined): string {
  return (tokens ?? []).map(plainOf).join('');
}

function plainOf(token: Token): string {
  if (token.type === 'br') return ' ';
  if (token.type === 'html') return '';
  if ('tokens' in token && token.tokens?.length) return plain(token.tokens);
  return 'text' in token && typeof token.text === 'string' ? token.text.replaceAll('\n', ' ') : '';
}

class Writer {
  readonly headings: Heading[] = [];
  readonly links: Link[] = [];
  readonly images: string[] = [];
  readonly #taken = new Map<string, number>();
  readonly #imageAddress: ImageAddress;
  readonly #marked: Marked;
  #from = '';

  constructor(imageAddress: ImageAddress) {
    this.#imageAddress = imageAddress;
    // marked calls these on a renderer of its own, which has the parser.
    const { heading, link, image } = this.#withParser();
    this.#marked = new Marked({ gfm: true, renderer: { heading, link, image, html, code, table } });
  }

  write({ token, from }: Block): string {
    this.#from = from;
    return this.#marked.parser([token]);
  }

  #withParser() {
    const writer = this;
    return {
      heading(this: Renderer, { tokens, depth }: Tokens.Heading): string {
        const text = plain(tokens);
        const id = writer.#idOf(text);
        writer.headings.push({ id, text, depth });
        const inner = `<h${depth} id="${escape(id)}">${this.parser.parseInline(tokens)}</h${depth}>`;
        if (depth === 1) return `${inner}\n`;
        // Beside the heading, so that its name stays what it says.
        const label = escape(`Link to “${text}”`);
        return `<div class="heading">${inner}<a class="anchor" href="#${escape(id)}" aria-label="${label}">#</a></div>\n`;
      },
      link(this: Renderer, { href, tokens }: Tokens.Link): string {
        return writer.#link(href, this.parser.parseInline(tokens), plain(tokens));
      },
      image(this: Renderer, { href, text }: Tokens.Image): string {
        const target = targetOf(writer.#from, href);
        if (target.kind !== 'source') return escape(text);
        writer.images.push(target.file);
        return `<img src="${escape(writer.#imageAddress(target.file))}" alt="${escape(text)}" loading="lazy" />`;
      },
    };
  }

  /** GitHub counts headings that are alike. */
  #idOf(text: string): string {
    const slug = slugOf(text);
    const count = this.#taken.get(slug) ?? 0;
    this.#taken.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  }

  #link(href: string, inner: string, text: string): string {
    const target = targetOf(this.#from, href);
    this.links.push({ from: this.#from, href, target });
    switch (target.kind) {
      case 'page': {
        const address = addressOf(target.file) + (target.anchor && `#${target.anchor}`);
        return `<a href="${escape(address)}">${inner}</a>`;
      }
      case 'served':
        return `<a href="${escape(target.address)}">${inner}</a>`;
      case 'web':
        return /^(https?|mailto):/i.test(href) ? `<a href="${escape(href)}" rel="noreferrer">${inner}</a>` : inner;
      case 'source':
        return text.includes(target.file) ? inner : `${inner} (<code>${escape(target.file)}</code> in the source)`;
    }
  }
}

/** Documents have no HTML: what looks like some is shown as it stands. */
function html({ text }: Tokens.HTML | Tokens.Tag): string {
  return escape(text);
}

function code({ text, lang }: Tokens.Code): string {
  const language = lang ? ` data-language="${escape(lang)}"` : '';
  return `<div class="code"><pre${language}><code>${escape(text)}\n</code></pre></div>\n`;
}

/** Tables scroll in their own box, so that a page never does sideways. */
function table(this: Renderer, token: Tokens.Table): string {
  return `<div class="table-box" role="group" aria-label="Table">${Renderer.prototype.table.call(this, token)}</div>\n`;
}

function sectionsOf(blocks: Block[], headings: Heading[]): Section[] {
  const sections: Section[] = [{ id: '', heading: '', text: '' }];
  const left = [...headings];
  for (const { token } of blocks) {
    if (token.type === 'heading') {
      const heading = left.shift();
      if (heading && heading.depth > 1) sections.push({ id: heading.id, heading: heading.text, text: '' });
      continue;
    }
    const section = sections.at(-1);
    if (section) section.text = `${section.text} ${textOf(token)}`.trim();
  }
  return sections.filter(({ heading, text }) => heading || text);
}

/** All text of a block, in one line. */
function textOf(token: Token): string {
  switch (token.type) {
    case 'table': {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].map((cells) => cells.map((cell) => plain(cell.tokens)).join(' · ')).join(' — ');
    }
    case 'list':
      return (token as Tokens.List).items.map((item) => item.tokens.map(textOf).join(' ')).join(' ');
    case 'blockquote':
      return (token as Tokens.Blockquote).tokens.map(textOf).join(' ');
    case 'code':
      return (token as Tokens.Code).text.replace(/\s+/g, ' ');
    case 'space':
    case 'hr':
    case 'def':
    case 'html':
      return '';
    default:
      return plainOf(token);
  }
}
