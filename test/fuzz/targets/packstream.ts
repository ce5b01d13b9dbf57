/** Values of Bolt, as any bytes: what is read is written and read again as the same, and what is none is refused as such. */
import { expect } from 'vitest';
import { PackStreamWriter, type PackStreamValue, PackStreamStructure, unpackSteps } from '../../../src/doors/graph/packstream.ts';
import { parametersOf } from '../../../src/doors/graph/values.ts';
import { ServiceError } from '../../../src/errors.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';

export const name = 'packstream';

const unpacked = (bytes: Uint8Array): PackStreamValue => allAtOnce(unpackSteps(Buffer.from(bytes)));

export function run(bytes: Uint8Array): void {
  try {
    const value = unpacked(bytes);
    // A structure of 16 fields and more can't be read.
    const packed = packedOf(value);
    expect(packedOf(unpacked(packed))).toEqual(packed);
    parametersOf(new Map([['p', value]]));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID') throw error;
  }
}

function packedOf(value: PackStreamValue): Buffer {
  const packer = new PackStreamWriter();
  packer.value(value);
  return Buffer.from(packer.bytes);
}

export function seeds(): Uint8Array[] {
  const values: readonly PackStreamValue[] = [
    [null, true, false, -17n, 127n, 128n, -129n, 40_000n, 2n ** 40n, -(2n ** 63n), 1.5, 'é', 'x'.repeat(300)],
    new Map<string, PackStreamValue>([
      ['a', [new Map([['b', 1n]])]],
      ['c', Buffer.from([1, 2])],
    ]),
    new PackStreamStructure(0x49, [1n, 2n, 0n]),
    new PackStreamStructure(0x44, [-3n]),
    new PackStreamStructure(0x45, [1n, 2n, 3n, 4n]),
  ];
  return [
    ...values.map(packedOf),
    Buffer.alloc(100, 0x91),
    Buffer.from('d6ffffffff', 'hex'),
    Buffer.from('a2816101816102', 'hex'),
  ];
}
