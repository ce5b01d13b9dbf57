/** Address ranges (modifier `cidr`), IPv4 and IPv6; an IPv4 address that is written as IPv6 is the IPv4 address. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
type Library = typeof import('ipaddr.js');
let loaded: Library | undefined;
/** Loads the library with the first rule that needs it. */
const library = (): Library => (loaded ??= require('ipaddr.js') as Library);

export interface Network {
  contains(text: string): boolean;
}

/** Undefined where the text is no range. Bits behind the prefix are ignored. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/');
  const first = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (first === undefined) return undefined;
  const suffix = slash === -1 ? String(first.length * 8) : text.slice(slash + 1);
  const bits = /^\d{1,3}$/.test(suffix) ? Number(suffix) : -1;
  if (bits < 0 || bits > first.length * 8) return undefined;
  return {
    contains(cell) {
      const address = parseAddress(cell);
      if (address === undefined || address.length !== first.length) return false;
      for (let i = 0, left = bits; left > 0; i++, left -= 8) {
        const mask = left >= 8 ? 0xff : (0xff << (8 - left)) & 0xff;
        if ((address[i]! & mask) !== (first[i]! & mask)) return false;
      }
      return true;
    },
  };
}

/** Longest text of an address: `ffff:…:255.255.255.255%zone` without its zone. */
const lengthMax = 45;

function parseAddress(text: string): readonly number[] | undefined {
  if (text.length > lengthMax) return undefined;
  if (!text.includes(':')) return parseFour(text);
  const { IPv6 } = library();
  if (!IPv6.isValid(text)) return undefined;
  const address = IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address().octets : address.toByteArray();
}

/** By hand: it is on the way of every event, and only the form with four decimal numbers is an address in a log. */
function parseFour(text: string): readonly number[] | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const numbers: number[] = [];
  for (const part of parts) {
    if (part.length === 0 || part.length > 3 || !/^\d+$/.test(part) || Number(part) > 255) return undefined;
    numbers.push(Number(part));
  }
  return numbers;
}
