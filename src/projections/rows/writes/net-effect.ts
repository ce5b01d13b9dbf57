/**
 * What several writes come to that are written together: of versions that one of them made and a later one closed, nothing is left, as
 * if each row had been written once, as it is in the end. Pure. What must hold:
 *
 * - what stood before is closed by what is left of its key;
 * - instants among the times of the writes themselves say when nothing of them held yet: where such a one bounds a version, the bound is
 *   the time of what takes its place.
 */
import type { NamedColumn, Vector } from '../../../log/values/columns.ts';
import { type EntryDraft, positionsOf, rowOp, type RowsBody } from '../../../log/entries/entry.ts';
import type { NextPlace } from '../../../log/log-store.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { gather } from '../cells/gather.ts';
import { boundAt, boundVector } from '../checks/written.ts';

/** A version as it was decided. */
interface Version {
  readonly body: RowsBody;
  readonly row: number;
  readonly key: string;
  /** Positions before the writes that it closes. */
  closes: number[];
  isLeft: boolean;
  /** system_from that it is written with. */
  time: bigint;
}

/** `drafts` were decided one after the other, from `next` on; what is returned belongs there as well. */
export function netEffect(drafts: readonly EntryDraft[], next: NextPlace): readonly EntryDraft[] {
  if (!drafts.some(({ body }) => body.kind === 'rows' && body.closes.some((position) => position >= next.position)))
    return drafts;
  const { versions, length } = versionsOf(drafts, next);
  const isAmong = (instant: bigint | null): boolean =>
    instant !== null && instant >= next.time && instant < next.time + BigInt(length);
  /** By key, versions that are left. */
  const left = new Map<string, Version[]>();
  for (const version of versions.values()) {
    if (!version.isLeft) continue;
    const ofKey = left.get(version.key) ?? [];
    left.set(version.key, ofKey);
    ofKey.push(version);
  }
  for (const ofKey of left.values()) {
    for (const version of ofKey) {
      const { body, row } = version;
      const [from, to] = boundsOf(body, row);
      if (body.ops[row] === rowOp.put || !isAmong(from) || !isAmong(to)) continue;
      const heir = ofKey.find((other) => other !== version && other.isLeft);
      if (heir === undefined && version.closes.length > 0) continue;
      heir?.closes.push(...version.closes);
      version.isLeft = false;
    }
  }
  const taking = (version: Version): Version | undefined => replacing(version, left.get(version.key)!, isAmong);
  const own: Written[] = [];
  const behind: Written[] = [];
  let first = next.position;
  for (const draft of drafts) {
    const { body } = draft;
    const positions = positionsOf(body);
    if (body.kind !== 'rows') own.push({ draft, versions: null });
    else {
      const all = Array.from(body.ops, (_, row) => versions.get(first + row)!).filter(({ isLeft }) => isLeft);
      // What is left over follows what took its place: there is no moment at which both hold.
      const isLate = (version: Version): boolean => (taking(version)?.body ?? body) !== body;
      own.push({ draft, versions: all.filter((version) => !isLate(version)) });
      behind.push({ draft, versions: all.filter(isLate) });
    }
    first += positions;
  }
  const written = [...own, ...behind].filter((each) => each.versions?.length !== 0);
  let { time } = next;
  for (const { draft, versions: placed } of written) {
    for (const version of placed ?? []) version.time = time++;
    if (placed === null) time += BigInt(positionsOf(draft.body));
  }
  return written.map(({ draft, versions: placed }) =>
    placed === null ? draft : { context: draft.context, body: bodyOf(draft.body as RowsBody, placed, taking, isAmong) },
  );
}

/** A draft, and of one with rows those that are written. */
interface Written {
  readonly draft: EntryDraft;
  readonly versions: readonly Version[] | null;
}

/** What holds from where the writes end a version; undefined: nothing of its key, or they don't. */
function replacing(
  { body, row }: Version,
  ofKey: readonly Version[],
  isAmong: (instant: bigint | null) => boolean,
): Version | undefined {
  if (!boundsOf(body, row).some(isAmong)) return undefined;
  return ofKey.findLast(
    (other) => other.isLeft && other.body.ops[other.row] === rowOp.put && boundsOf(other.body, other.row)[0] === null,
  );
}

function versionsOf(
  drafts: readonly EntryDraft[],
  next: NextPlace,
): { readonly versions: ReadonlyMap<number, Version>; readonly length: number } {
  const versions = new Map<number, Version>();
  let { position } = next;
  for (const { body } of drafts) {
    if (body.kind === 'rows') {
      const { vector } = body.keys.columns[0]!;
      for (let row = 0; row < body.ops.length; row++) {
        const key = `${body.type}\0${String(cellAt(vector, 'string', row))}`;
        const version: Version = { body, row, key, closes: [], isLeft: true, time: 0n };
        for (const closed of body.closes.subarray(body.closeOffsets[row], body.closeOffsets[row + 1])) {
          const own = versions.get(closed);
          if (own === undefined) version.closes.push(closed);
          else {
            own.isLeft = false;
            version.closes.push(...own.closes);
            own.closes = [];
          }
        }
        versions.set(position + row, version);
      }
    }
    position += positionsOf(body);
  }
  return { versions, length: position - next.position };
}

function bodyOf(
  body: RowsBody,
  kept: readonly Version[],
  taking: (version: Version) => Version | undefined,
  isAmong: (instant: bigint | null) => boolean,
): RowsBody {
  const rows = Int32Array.from(kept, ({ row }) => row);
  const bounds = kept.map((version) => {
    const [from, to] = boundsOf(body, version.row);
    const at = (taking(version) ?? version).time;
    return [isAmong(from) ? at : from, isAmong(to) ? at : to] as const;
  });
  const closeOffsets = new Uint32Array(kept.length + 1);
  for (const [i, { closes }] of kept.entries()) closeOffsets[i + 1] = closeOffsets[i]! + closes.length;
  const [keys, from, to] = body.keys.columns;
  const picked = (column: NamedColumn, vector: Vector = gather(column.vector, rows)): NamedColumn => ({ ...column, vector });
  return {
    ...body,
    ops: Uint8Array.from(rows, (row) => body.ops[row]!),
    keys: {
      length: rows.length,
      columns: [
        picked(keys!),
        picked(from!, boundVector(bounds.map(([each]) => each))),
        picked(to!, boundVector(bounds.map(([, each]) => each))),
      ],
    },
    closeOffsets,
    closes: Float64Array.from(kept.flatMap(({ closes }) => closes)),
    cells: { length: rows.length, columns: body.cells.columns.map((column) => picked(column)) },
    ...(body.subjects && { subjects: gather(body.subjects, rows) }),
  };
}

function boundsOf({ keys }: RowsBody, row: number): readonly [bigint | null, bigint | null] {
  return [boundAt(keys.columns[1]!.vector, row), boundAt(keys.columns[2]!.vector, row)];
}
