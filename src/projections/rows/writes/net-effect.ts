/**
 * The net effect of several writes in one append: a version that one of them made and a later one closed is dropped, as if each
 * row had been written once, in its final state. Pure. Invariants:
 *
 * - stored versions are closed by the kept versions of their key;
 * - a version that alone leads from a kept version to its subject stays, and its replacement closes it: an erasure finds its way
 *   by it;
 * - instants among the times of the writes themselves mean that none of them held yet: where such an instant bounds a version,
 *   the bound is the time of its replacement.
 */
import type { NamedColumn, Vector } from '../../../log/values/columns.ts';
import { type EntryDraft, positionsOf, rowOp, type RowsBody } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { namesIn, namingColumns } from '../../catalog/naming-columns.ts';
import { gather } from '../cells/gather-rows.ts';
import { boundAt, boundVector } from '../checks/version-columns.ts';

/** A version as it was decided. */
interface Version {
  readonly body: RowsBody;
  readonly row: number;
  /** With its type. */
  readonly key: string;
  /** Versions that it closes, both stored ones and those that the writes keep. */
  readonly closes: (number | Version)[];
  /** The version that closes it, or takes its place; null: the writes have none. */
  successor: Version | null;
  /** It, or a version that it replaced, closes a stored version. */
  isClosing: boolean;
  isLeft: boolean;
  /** It is left for what it names alone. */
  isKept: boolean;
  /** system_from and position that it is written with. */
  time: bigint;
  position: number;
}

/** `drafts` were decided one after the other, from `next` on; the result belongs there as well. */
export function netEffect(drafts: readonly EntryDraft[], next: NextPosition): readonly EntryDraft[] {
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
      if (heir === undefined && version.isClosing) continue;
      if (heir !== undefined) {
        heir.isClosing ||= version.isClosing;
        version.successor = heir;
      }
      version.isLeft = false;
    }
  }
  if (drafts.some(({ body }) => body.kind === 'rows' && body.subjects !== undefined)) keepNaming([...versions.values()], left);
  passCloses(versions.values());
  const taking = (version: Version): Version | undefined =>
    version.isKept ? undefined : replacing(version, left.get(version.key) ?? [], isAmong);
  const own: Written[] = [];
  const behind: Written[] = [];
  let first = next.position;
  for (const draft of drafts) {
    const { body } = draft;
    const positions = positionsOf(body);
    if (body.kind !== 'rows') own.push({ draft, versions: null });
    else {
      const all = Array.from(body.ops, (_, row) => versions.get(first + row)!).filter(({ isLeft }) => isLeft);
      // A remainder follows the version that took its place: the two never hold at the same moment.
      const isLate = (version: Version): boolean => (taking(version)?.body ?? body) !== body;
      own.push({ draft, versions: all.filter((version) => !isLate(version)) });
      behind.push({ draft, versions: all.filter(isLate) });
    }
    first += positions;
  }
  const written = [...own, ...behind].filter((each) => each.versions?.length !== 0);
  let { time } = next;
  for (const { draft, versions: placed } of written) {
    for (const version of placed ?? []) {
      version.position = next.position + Number(time - next.time);
      version.time = time++;
    }
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

/** The version that holds from where the writes end this one; undefined: its key has none left, or the writes don't end it. */
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
  next: NextPosition,
): { readonly versions: ReadonlyMap<number, Version>; readonly length: number } {
  const versions = new Map<number, Version>();
  let { position } = next;
  for (const { body } of drafts) {
    if (body.kind === 'rows') {
      const { vector } = body.keys.columns[0]!;
      for (let row = 0; row < body.ops.length; row++) {
        const key = `${body.type}\0${String(cellAt(vector, 'string', row))}`;
        const fresh = { closes: [], successor: null, isClosing: false, isLeft: true, isKept: false, time: 0n, position: 0 };
        const version: Version = { body, row, key, ...fresh };
        for (const closed of body.closes.subarray(body.closeOffsets[row], body.closeOffsets[row + 1])) {
          const own = versions.get(closed);
          version.isClosing ||= own?.isClosing ?? true;
          if (own === undefined) version.closes.push(closed);
          else {
            own.isLeft = false;
            own.successor = version;
          }
        }
        versions.set(position + row, version);
      }
    }
    position += positionsOf(body);
  }
  return { versions, length: position - next.position };
}

/**
 * Keeps versions that would be dropped but are sealed for a subject, where no other version leads to that subject: the version in
 * its place was made from a row that it alone names, or a kept version names its key.
 */
function keepNaming(versions: readonly Version[], left: ReadonlyMap<string, readonly Version[]>): void {
  const named = new Set<string>();
  const name = (version: Version): void => namesOf(version).forEach((each) => named.add(each));
  for (const version of versions) if (version.isLeft) name(version);
  const dropped = versions.filter((version) => {
    const { body, row, key, isLeft } = version;
    if (isLeft || body.ops[row] !== rowOp.put || subjectOf(version) === null) return false;
    return left.get(key)?.some((heir) => heir.isLeft && carries(heir, version)) !== true;
  });
  const isNeeded = (version: Version): boolean =>
    named.has(version.key.slice(version.key.indexOf('\0') + 1)) ||
    (namesOf(version).length > 0 &&
      left.get(version.key)?.some(({ body, row, isLeft }) => isLeft && body.ops[row] === rowOp.put) === true);
  for (let waiting = dropped; ; ) {
    const needed = waiting.filter(isNeeded);
    if (needed.length === 0) return;
    for (const version of needed) {
      version.isLeft = version.isKept = true;
      name(version);
      let last = version;
      while (last.successor !== null && !last.successor.isLeft) last = last.successor;
      // The end of a row that was new goes with it, but for what is left of the row.
      if (last.successor === null) last.isLeft = true;
    }
    waiting = waiting.filter(({ isKept }) => !isKept);
  }
}

/** It leads to the same subject. */
function carries(heir: Version, version: Version): boolean {
  const names = new Set(namesOf(heir));
  return subjectOf(heir) === subjectOf(version) && namesOf(version).every((each) => names.has(each));
}

function subjectOf({ body: { subjects }, row }: Version): string | null {
  return subjects === undefined ? null : (cellAt(subjects, 'string', row) as string | null);
}

function namesOf({ body: { type, cells }, row }: Version): readonly string[] {
  const naming = namingColumns(type, { has: (name) => cells.columns.some((column) => column.name === name) });
  return cells.columns.flatMap((column) =>
    naming.includes(column.name) ? namesIn(cellAt(column.vector, column.type, row)) : [],
  );
}

/** Hands the closings of dropped versions to the versions in their place; a kept version is closed by its successor. */
function passCloses(versions: Iterable<Version>): void {
  for (const version of versions) {
    let heir = version.successor;
    while (heir !== null && !heir.isLeft) heir = heir.successor;
    if (version.isLeft) heir?.closes.push(version);
    else heir?.closes.push(...version.closes.filter((closed) => typeof closed === 'number'));
  }
}

function bodyOf(
  body: RowsBody,
  finalVersions: readonly Version[],
  taking: (version: Version) => Version | undefined,
  isAmong: (instant: bigint | null) => boolean,
): RowsBody {
  const rows = Int32Array.from(finalVersions, ({ row }) => row);
  const bounds = finalVersions.map((version) => {
    const [from, to] = boundsOf(body, version.row);
    const at = (taking(version) ?? version).time;
    return [isAmong(from) ? at : from, isAmong(to) ? at : to] as const;
  });
  const closeOffsets = new Uint32Array(finalVersions.length + 1);
  for (const [i, { closes }] of finalVersions.entries()) closeOffsets[i + 1] = closeOffsets[i]! + closes.length;
  const [keys, from, to] = body.keys.columns;
  const pickColumn = (column: NamedColumn, vector: Vector = gather(column.vector, rows)): NamedColumn => ({ ...column, vector });
  return {
    ...body,
    ops: Uint8Array.from(rows, (row) => body.ops[row]!),
    keys: {
      length: rows.length,
      columns: [
        pickColumn(keys!),
        pickColumn(from!, boundVector(bounds.map(([each]) => each))),
        pickColumn(to!, boundVector(bounds.map(([, each]) => each))),
      ],
    },
    closeOffsets,
    closes: Float64Array.from(
      finalVersions.flatMap(({ closes }) => closes.map((closed) => (typeof closed === 'number' ? closed : closed.position))),
    ),
    cells: { length: rows.length, columns: body.cells.columns.map((column) => pickColumn(column)) },
    ...(body.subjects && { subjects: gather(body.subjects, rows) }),
  };
}

function boundsOf({ keys }: RowsBody, row: number): readonly [bigint | null, bigint | null] {
  return [boundAt(keys.columns[1]!.vector, row), boundAt(keys.columns[2]!.vector, row)];
}
