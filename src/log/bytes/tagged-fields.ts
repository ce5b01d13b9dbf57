/**
 * Fields of a body beside those that every body of its kind has:
 *
 *   count u8 | tag u8, size u32, bytes | …      tags rising
 *
 * A later release adds a field by a tag of its own, and needs no new version: a release that does not know a tag refuses the
 * body, since the field may change the meaning of the entry.
 */
import { ServiceError } from '../../errors.ts';
import { ByteReader, ByteWriter, malformedError } from './byte-stream.ts';

/** Writes the value of one field; null: the field is absent. */
export type FieldWriter = readonly [tag: number, write: ((target: ByteWriter) => void) | null];

export function writeFields(fields: readonly FieldWriter[], target: ByteWriter): void {
  const present = fields.flatMap(([tag, write]) => (write === null ? [] : [{ tag, write }]));
  target.u8(present.length);
  const bytes = new ByteWriter(256);
  for (const { tag, write } of present) {
    bytes.reset();
    write(bytes);
    target.u8(tag);
    target.u32(bytes.length);
    target.raw(bytes.view());
  }
}

/** Calls back for each field, with its bytes: all of them are to be read. False: the tag is not known. */
export function readFields(source: ByteReader, read: (tag: number, field: ByteReader) => boolean): void {
  let last = 0;
  for (let left = source.u8(); left > 0; left--) {
    const tag = source.u8();
    if (tag <= last) throw malformedError('fields out of order');
    last = tag;
    const field = new ByteReader(source.raw(source.u32()));
    if (!read(tag, field)) {
      throw new ServiceError(
        'REL_STORAGE',
        `a body has the field ${tag}, which this release does not know: a later one wrote it`,
      );
    }
    field.end();
  }
}
