/** Checksums that clients send with a body, each over all of it, piece by piece. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const checksumNames = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;
export type ChecksumName = (typeof checksumNames)[number];

export const checksumHeader = (name: ChecksumName): string => `x-amz-checksum-${name}`;

/** Finds a checksum by its name in `x-amz-checksum-algorithm` and its like; null: there is none. */
export const checksumNamed = (statedChecksum: string): ChecksumName | null =>
  checksumNames.find((checksumName) => checksumName === statedChecksum.trim().toLowerCase()) ?? null;

const checksumDigestBytes: Readonly<Record<ChecksumName, number>> = { crc32: 4, crc32c: 4, crc64nvme: 8, sha1: 20, sha256: 32 };

export const isChecksumValue = (checksumName: ChecksumName, statedValue: string): boolean => {
  const digest = Buffer.from(statedValue, 'base64');
  return digest.length === checksumDigestBytes[checksumName] && digest.toString('base64') === statedValue;
};

export interface Checksum {
  update(piece: Uint8Array): void;
  /** The checksum in base64, as in headers. */
  value(): string;
}

export function checksumOf(checksumName: ChecksumName): Checksum {
  switch (checksumName) {
    case 'sha1':
    case 'sha256': {
      const shaHash = createHash(checksumName);
      return { update: (hashedPiece) => void shaHash.update(hashedPiece), value: () => shaHash.copy().digest('base64') };
    }
    case 'crc32': {
      let crc32State = 0;
      return {
        update: (hashedPiece) => void (crc32State = crc32(hashedPiece, crc32State)),
        value: () => checksumOfInt32(crc32State),
      };
    }
    case 'crc32c':
      return crc32c();
    case 'crc64nvme':
      return crc64nvme();
  }
}

function crc32c(): Checksum {
  const crcTables = (castagnoliTables ??= crc32cTables(0x82f6_3b78));
  let crcState = ~0;
  return {
    update(hashedPiece) {
      crcState = updateCrc32c(crcTables, crcState, hashedPiece);
    },
    value: () => checksumOfInt32(~crcState),
  };
}

let castagnoliTables: readonly Uint32Array[] | null = null;

/** Table k is of a byte with k zero bytes behind it, so that eight bytes are taken at once. */
function crc32cTables(crcPolynomial: number): Uint32Array[] {
  const firstTable = new Uint32Array(256).map((_, tableByte) => {
    let tableCrc = tableByte;
    for (let crcBit = 0; crcBit < 8; crcBit++) tableCrc = tableCrc & 1 ? (tableCrc >>> 1) ^ crcPolynomial : tableCrc >>> 1;
    return tableCrc;
  });
  const crcTables = [firstTable];
  for (let k = 1; k < 8; k++) crcTables.push(crcTables[k - 1]!.map((tableCrc) => (tableCrc >>> 8) ^ firstTable[tableCrc & 255]!));
  return crcTables;
}

function updateCrc32c(crcTables: readonly Uint32Array[], crcBefore: number, hashedBytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = crcTables as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ];
  let crcState = crcBefore;
  let hashedOffset = 0;
  for (const wholeWordsEnd = hashedBytes.length - 7; hashedOffset < wholeWordsEnd; hashedOffset += 8) {
    const crcWord =
      crcState ^
      (hashedBytes[hashedOffset]! |
        (hashedBytes[hashedOffset + 1]! << 8) |
        (hashedBytes[hashedOffset + 2]! << 16) |
        (hashedBytes[hashedOffset + 3]! << 24));
    crcState =
      t7[crcWord & 255]! ^
      t6[(crcWord >>> 8) & 255]! ^
      t5[(crcWord >>> 16) & 255]! ^
      t4[crcWord >>> 24]! ^
      t3[hashedBytes[hashedOffset + 4]!]! ^
      t2[hashedBytes[hashedOffset + 5]!]! ^
      t1[hashedBytes[hashedOffset + 6]!]! ^
      t0[hashedBytes[hashedOffset + 7]!]!;
  }
  for (; hashedOffset < hashedBytes.length; hashedOffset++)
    crcState = (crcState >>> 8) ^ t0[(crcState ^ hashedBytes[hashedOffset]!) & 255]!;
  return crcState;
}

const nvmePolynomial = 0x9a6c_9329_ac4b_c9b5n;
let nvmeTables: { readonly low: Int32Array; readonly high: Int32Array } | null = null;

/** Tables of 64-bit values as halves of 32 bits. */
function crc64Tables(): { readonly low: Int32Array; readonly high: Int32Array } {
  const lowTable = new Int32Array(8 * 256);
  const highTable = new Int32Array(8 * 256);
  for (let tableByte = 0; tableByte < 256; tableByte++) {
    let tableCrc = BigInt(tableByte);
    for (let crcBit = 0; crcBit < 8; crcBit++) tableCrc = tableCrc & 1n ? (tableCrc >> 1n) ^ nvmePolynomial : tableCrc >> 1n;
    lowTable[tableByte] = Number(BigInt.asIntN(32, tableCrc));
    highTable[tableByte] = Number(BigInt.asIntN(32, tableCrc >> 32n));
  }
  for (let k = 1; k < 8; k++) {
    for (let byte = 0; byte < 256; byte++) {
      const earlierIndex = (k - 1) * 256 + byte;
      const tableIndex = lowTable[earlierIndex]! & 255;
      lowTable[k * 256 + byte] = ((lowTable[earlierIndex]! >>> 8) | (highTable[earlierIndex]! << 24)) ^ lowTable[tableIndex]!;
      highTable[k * 256 + byte] = (highTable[earlierIndex]! >>> 8) ^ highTable[tableIndex]!;
    }
  }
  return { low: lowTable, high: highTable };
}

function crc64nvme(): Checksum {
  const { low: lowTable, high: highTable } = (nvmeTables ??= crc64Tables());
  let lowCrc = ~0;
  let highCrc = ~0;
  return {
    update(hashedBytes) {
      let hashedOffset = 0;
      for (const wholeWordsEnd = hashedBytes.length - 7; hashedOffset < wholeWordsEnd; hashedOffset += 8) {
        const a =
          lowCrc ^
          (hashedBytes[hashedOffset]! |
            (hashedBytes[hashedOffset + 1]! << 8) |
            (hashedBytes[hashedOffset + 2]! << 16) |
            (hashedBytes[hashedOffset + 3]! << 24));
        const b =
          highCrc ^
          (hashedBytes[hashedOffset + 4]! |
            (hashedBytes[hashedOffset + 5]! << 8) |
            (hashedBytes[hashedOffset + 6]! << 16) |
            (hashedBytes[hashedOffset + 7]! << 24));
        const i7 = 1792 + (a & 255);
        const i6 = 1536 + ((a >>> 8) & 255);
        const i5 = 1280 + ((a >>> 16) & 255);
        const i4 = 1024 + (a >>> 24);
        const i3 = 768 + (b & 255);
        const i2 = 512 + ((b >>> 8) & 255);
        const i1 = 256 + ((b >>> 16) & 255);
        const i0 = b >>> 24;
        lowCrc =
          lowTable[i7]! ^
          lowTable[i6]! ^
          lowTable[i5]! ^
          lowTable[i4]! ^
          lowTable[i3]! ^
          lowTable[i2]! ^
          lowTable[i1]! ^
          lowTable[i0]!;
        highCrc =
          highTable[i7]! ^
          highTable[i6]! ^
          highTable[i5]! ^
          highTable[i4]! ^
          highTable[i3]! ^
          highTable[i2]! ^
          highTable[i1]! ^
          highTable[i0]!;
      }
      for (; hashedOffset < hashedBytes.length; hashedOffset++) {
        const tableIndex = (lowCrc ^ hashedBytes[hashedOffset]!) & 255;
        lowCrc = ((lowCrc >>> 8) | (highCrc << 24)) ^ lowTable[tableIndex]!;
        highCrc = (highCrc >>> 8) ^ highTable[tableIndex]!;
      }
    },
    value() {
      const crc64Bytes = Buffer.alloc(8);
      crc64Bytes.writeInt32BE(~highCrc);
      crc64Bytes.writeInt32BE(~lowCrc, 4);
      return crc64Bytes.toString('base64');
    },
  };
}

function checksumOfInt32(crcValue: number): string {
  const crcBytes = Buffer.alloc(4);
  crcBytes.writeUInt32BE(crcValue >>> 0);
  return crcBytes.toString('base64');
}
