/** Address ranges (modifier `cidr`), IPv4 and IPv6; an IPv4 address that is written as IPv6 is the IPv4 address. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
type IpLibrary = typeof import('ipaddr.js');
let loadedIpLibrary: IpLibrary | undefined;
/** Loads the library with the first rule that needs it. */
const ipLibrary = (): IpLibrary => (loadedIpLibrary ??= require('ipaddr.js') as IpLibrary);

export interface Network {
  contains(text: string): boolean;
}

/** Undefined where the text is no range. Bits behind the prefix are ignored. */
export function parseNetwork(text: string): Network | undefined {
  const prefixSlash = text.indexOf('/');
  const networkAddress = parseAddress(prefixSlash === -1 ? text : text.slice(0, prefixSlash));
  if (networkAddress === undefined) return undefined;
  const prefixText = prefixSlash === -1 ? String(networkAddress.length * 8) : text.slice(prefixSlash + 1);
  const prefixBits = /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : -1;
  if (prefixBits < 0 || prefixBits > networkAddress.length * 8) return undefined;
  return {
    contains(cell) {
      const address = parseAddress(cell);
      if (address === undefined || address.length !== networkAddress.length) return false;
      for (let i = 0, prefixBitsLeft = prefixBits; prefixBitsLeft > 0; i++, prefixBitsLeft -= 8) {
        const octetMask = prefixBitsLeft >= 8 ? 0xff : (0xff << (8 - prefixBitsLeft)) & 0xff;
        if ((address[i]! & octetMask) !== (networkAddress[i]! & octetMask)) return false;
      }
      return true;
    },
  };
}

/** Longest text of an address: `ffff:…:255.255.255.255%zone` without its zone. */
const addressLengthMax = 45;

function parseAddress(text: string): readonly number[] | undefined {
  if (text.length > addressLengthMax) return undefined;
  if (!text.includes(':')) return parseDottedQuad(text);
  const { IPv6 } = ipLibrary();
  if (!IPv6.isValid(text)) return undefined;
  const address = IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address().octets : address.toByteArray();
}

/** By hand: it is on the way of every event, and only the form with four decimal numbers is an address in a log. */
function parseDottedQuad(text: string): readonly number[] | undefined {
  const dottedParts = text.split('.');
  if (dottedParts.length !== 4) return undefined;
  const octets: number[] = [];
  for (const dottedPart of dottedParts) {
    if (dottedPart.length === 0 || dottedPart.length > 3 || !/^\d+$/.test(dottedPart) || Number(dottedPart) > 255)
      return undefined;
    octets.push(Number(dottedPart));
  }
  return octets;
}
