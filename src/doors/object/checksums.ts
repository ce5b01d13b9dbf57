/** Checksums that clients send with a body, each over all of it, piece by piece. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const checksumNames = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;
export type ChecksumName = (typeof checksumNames)[number];

export const checksumHeader = (name: ChecksumName): string => `x-amz-checksum-${name}`;

/** Finds a checksum by its name in `x-amz-checksum-algorithm` and its like; null: there is none. */
export const checksumNamed = (said: string): ChecksumName | null =>
  checksumNames.find((name) => name === said.trim().toLowerCase()) ?? null;

const digestBytes: Readonly<Record<ChecksumName, number>> = { crc32: 4, crc32c: 4, crc64nvme: 8, sha1: 20, sha256: 32 };

export const isChecksumValue = (name: ChecksumName, said: string): boolean => {
  const bytes = Buffer.from(said, 'base64');
  return bytes.length === digestBytes[name] && bytes.toString('base64') === said;
};

export interface Checksum {
  update(piece: Uint8Array): void;
  /** The checksum in base64, as in headers. */
  value(): string;
}

export function checksumOf(name: ChecksumName): Checksum {
  switch (name) {
    case 'sha1':
    case 'sha256': {
      const hash = createHash(name);
      return { update: (piece) => void hash.update(piece), value: () => hash.copy().digest('base64') };
    }
    case 'crc32': {
      let state = 0;
      return { update: (piece) => void (state = crc32(piece, state)), value: () => ofInt32(state) };
    }
    case 'crc32c':
      return crc32c();
    case 'crc64nvme':
      return crc64nvme();
  }
}

function crc32c(): Checksum {
  const tables = (castagnoli ??= slices32(0x82f6_3b78));
  let crc = ~0;
  return {
    update(piece) {
      crc = update32(tables, crc, piece);
    },
    value: () => ofInt32(~crc),
  };
}

let castagnoli: readonly Uint32Array[] | null = null;

/** Table k is of a byte with k zero bytes behind it, so that eight bytes are taken at once. */
function slices32(polynomial: number): Uint32Array[] {
  const first = new Uint32Array(256).map((_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    return crc;
  });
  const tables = [first];
  for (let k = 1; k < 8; k++) tables.push(tables[k - 1]!.map((crc) => (crc >>> 8) ^ first[crc & 255]!));
  return tables;
}

function update32(tables: readonly Uint32Array[], from: number, bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ];
  let crc = from;
  let at = 0;
  for (const end = bytes.length - 7; at < end; at += 8) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      t7[low & 255]! ^
      t6[(low >>> 8) & 255]! ^
      t5[(low >>> 16) & 255]! ^
      t4[low >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 255]!;
  return crc;
}

const nvme = 0x9a6c_9329_ac4b_c9b5n;
let nvmeTables: { readonly low: Int32Array; readonly high: Int32Array } | null = null;

/** Tables of 64-bit values as halves of 32 bits. */
function slices64(): { readonly low: Int32Array; readonly high: Int32Array } {
  const low = new Int32Array(8 * 256);
  const high = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ nvme : crc >> 1n;
    low[byte] = Number(BigInt.asIntN(32, crc));
    high[byte] = Number(BigInt.asIntN(32, crc >> 32n));
  }
  for (let k = 1; k < 8; k++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = (k - 1) * 256 + byte;
      const index = low[before]! & 255;
      low[k * 256 + byte] = ((low[before]! >>> 8) | (high[before]! << 24)) ^ low[index]!;
      high[k * 256 + byte] = (high[before]! >>> 8) ^ high[index]!;
    }
  }
  return { low, high };
}

function crc64nvme(): Checksum {
  const { low: lows, high: highs } = (nvmeTables ??= slices64());
  let low = ~0;
  let high = ~0;
  return {
    update(bytes) {
      let at = 0;
      for (const end = bytes.length - 7; at < end; at += 8) {
        const a = low ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
        const b = high ^ (bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24));
        const i7 = 1792 + (a & 255);
        const i6 = 1536 + ((a >>> 8) & 255);
        const i5 = 1280 + ((a >>> 16) & 255);
        const i4 = 1024 + (a >>> 24);
        const i3 = 768 + (b & 255);
        const i2 = 512 + ((b >>> 8) & 255);
        const i1 = 256 + ((b >>> 16) & 255);
        const i0 = b >>> 24;
        low = lows[i7]! ^ lows[i6]! ^ lows[i5]! ^ lows[i4]! ^ lows[i3]! ^ lows[i2]! ^ lows[i1]! ^ lows[i0]!;
        high = highs[i7]! ^ highs[i6]! ^ highs[i5]! ^ highs[i4]! ^ highs[i3]! ^ highs[i2]! ^ highs[i1]! ^ highs[i0]!;
      }
      for (; at < bytes.length; at++) {
        const index = (low ^ bytes[at]!) & 255;
        low = ((low >>> 8) | (high << 24)) ^ lows[index]!;
        high = (high >>> 8) ^ highs[index]!;
      }
    },
    value() {
      const bytes = Buffer.alloc(8);
      bytes.writeInt32BE(~high);
      bytes.writeInt32BE(~low, 4);
      return bytes.toString('base64');
    },
  };
}

function ofInt32(value: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes.toString('base64');
}
