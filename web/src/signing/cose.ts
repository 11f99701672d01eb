// The public key of a new passkey, out of what its authenticator says (W3C Web Authentication, section 6.1). Pure.

/** The hash of the relying party, the flags, the counter. */
const HEAD = 32 + 1 + 4;
const MODEL = 16;
const HAS_CREDENTIAL = 1 << 6;

/** The key in COSE form; null where the data holds none. */
export function publicKeyOf(data: Uint8Array): Uint8Array | null {
  const flags = data[32] ?? 0;
  const lengthAt = HEAD + MODEL;
  if (!(flags & HAS_CREDENTIAL) || data.length < lengthAt + 2) return null;
  const idLength = (data[lengthAt] ?? 0) * 256 + (data[lengthAt + 1] ?? 0);
  const start = lengthAt + 2 + idLength;
  // Extensions may follow it.
  const end = afterItem(data, start, 0);
  return end === null ? null : data.subarray(start, end);
}

/** A key nests no deeper. */
const MOST_DEPTH = 4;

/** Where the item of CBOR that begins here ends; null where there is none that a key may have (RFC 8949). */
function afterItem(data: Uint8Array, at: number, depth: number): number | null {
  const first = data[at];
  if (first === undefined || depth > MOST_DEPTH) return null;
  const short = first & 0x1f;
  const size = short < 24 ? 0 : ({ 24: 1, 25: 2, 26: 4 }[short] ?? null);
  if (size === null) return null;
  let value = size === 0 ? short : 0;
  for (let index = 1; index <= size; index += 1) value = value * 256 + (data[at + index] ?? 0);
  let end: number | null = at + 1 + size;
  switch (first >> 5) {
    case 0:
    case 1:
    case 7:
      break;
    case 2:
    case 3:
      end += value;
      break;
    case 4:
    case 5: {
      const items = first >> 5 === 5 ? value * 2 : value;
      for (let index = 0; index < items && end !== null; index += 1) end = afterItem(data, end, depth + 1);
      break;
    }
    default:
      return null;
  }
  return end === null || end > data.length ? null : end;
}
