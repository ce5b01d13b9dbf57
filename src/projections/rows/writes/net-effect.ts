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
interface DraftedVersion {
  readonly body: RowsBody;
  readonly row: number;
  /** With its type. */
  readonly key: string;
  /** Versions that it closes, both stored ones and those that the writes keep. */
  readonly closes: (number | DraftedVersion)[];
  /** The version that closes it, or takes its place; null: the writes have none. */
  successor: DraftedVersion | null;
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
  const { versions, length } = draftedVersionsOf(drafts, next);
  const isInTransaction = (instant: bigint | null): boolean =>
    instant !== null && instant >= next.time && instant < next.time + BigInt(length);
  /** By key, versions that are left. */
  const leftByKey = new Map<string, DraftedVersion[]>();
  for (const draftedVersion of versions.values()) {
    if (!draftedVersion.isLeft) continue;
    const versionsOfKey = leftByKey.get(draftedVersion.key) ?? [];
    leftByKey.set(draftedVersion.key, versionsOfKey);
    versionsOfKey.push(draftedVersion);
  }
  for (const ofKey of leftByKey.values()) {
    for (const version of ofKey) {
      const { body, row } = version;
      const [versionFrom, versionTo] = draftedBoundsOf(body, row);
      if (body.ops[row] === rowOp.put || !isInTransaction(versionFrom) || !isInTransaction(versionTo)) continue;
      const heirVersion = ofKey.find((otherVersion) => otherVersion !== version && otherVersion.isLeft);
      if (heirVersion === undefined && version.isClosing) continue;
      if (heirVersion !== undefined) {
        heirVersion.isClosing ||= version.isClosing;
        version.successor = heirVersion;
      }
      version.isLeft = false;
    }
  }
  if (drafts.some(({ body }) => body.kind === 'rows' && body.subjects !== undefined))
    keepNamingVersions([...versions.values()], leftByKey);
  passClosesToHeirs(versions.values());
  const replacementOf = (version: DraftedVersion): DraftedVersion | undefined =>
    version.isKept ? undefined : replacementIn(version, leftByKey.get(version.key) ?? [], isInTransaction);
  const ownVersions: WrittenDraft[] = [];
  const lateVersions: WrittenDraft[] = [];
  let firstPosition = next.position;
  for (const draft of drafts) {
    const { body } = draft;
    const positionCount = positionsOf(body);
    if (body.kind !== 'rows') ownVersions.push({ draft, versions: null });
    else {
      const versionsLeft = Array.from(body.ops, (_, row) => versions.get(firstPosition + row)!).filter(({ isLeft }) => isLeft);
      // A remainder follows the version that took its place: the two never hold at the same moment.
      const isVersionLate = (version: DraftedVersion): boolean => (replacementOf(version)?.body ?? body) !== body;
      ownVersions.push({ draft, versions: versionsLeft.filter((version) => !isVersionLate(version)) });
      lateVersions.push({ draft, versions: versionsLeft.filter(isVersionLate) });
    }
    firstPosition += positionCount;
  }
  const writtenDrafts = [...ownVersions, ...lateVersions].filter((writtenDraft) => writtenDraft.versions?.length !== 0);
  let { time } = next;
  for (const { draft, versions: placedVersions } of writtenDrafts) {
    for (const version of placedVersions ?? []) {
      version.position = next.position + Number(time - next.time);
      version.time = time++;
    }
    if (placedVersions === null) time += BigInt(positionsOf(draft.body));
  }
  return writtenDrafts.map(({ draft, versions: placed }) =>
    placed === null
      ? draft
      : { context: draft.context, body: netBodyOf(draft.body as RowsBody, placed, replacementOf, isInTransaction) },
  );
}

/** A draft, and of one with rows those that are written. */
interface WrittenDraft {
  readonly draft: EntryDraft;
  readonly versions: readonly DraftedVersion[] | null;
}

/** The version that holds from where the writes end this one; undefined: its key has none left, or the writes don't end it. */
function replacementIn(
  { body, row }: DraftedVersion,
  versionsOfKey: readonly DraftedVersion[],
  isInTransaction: (instant: bigint | null) => boolean,
): DraftedVersion | undefined {
  if (!draftedBoundsOf(body, row).some(isInTransaction)) return undefined;
  return versionsOfKey.findLast(
    (otherVersion) =>
      otherVersion.isLeft &&
      otherVersion.body.ops[otherVersion.row] === rowOp.put &&
      draftedBoundsOf(otherVersion.body, otherVersion.row)[0] === null,
  );
}

function draftedVersionsOf(
  drafts: readonly EntryDraft[],
  next: NextPosition,
): { readonly versions: ReadonlyMap<number, DraftedVersion>; readonly length: number } {
  const draftedVersions = new Map<number, DraftedVersion>();
  let { position } = next;
  for (const { body } of drafts) {
    if (body.kind === 'rows') {
      const { vector } = body.keys.columns[0]!;
      for (let row = 0; row < body.ops.length; row++) {
        const versionKey = `${body.type}\0${String(cellAt(vector, 'string', row))}`;
        const freshVersion = {
          closes: [],
          successor: null,
          isClosing: false,
          isLeft: true,
          isKept: false,
          time: 0n,
          position: 0,
        };
        const draftedVersion: DraftedVersion = { body, row, key: versionKey, ...freshVersion };
        for (const closedPosition of body.closes.subarray(body.closeOffsets[row], body.closeOffsets[row + 1])) {
          const closedVersion = draftedVersions.get(closedPosition);
          draftedVersion.isClosing ||= closedVersion?.isClosing ?? true;
          if (closedVersion === undefined) draftedVersion.closes.push(closedPosition);
          else {
            closedVersion.isLeft = false;
            closedVersion.successor = draftedVersion;
          }
        }
        draftedVersions.set(position + row, draftedVersion);
      }
    }
    position += positionsOf(body);
  }
  return { versions: draftedVersions, length: position - next.position };
}

/**
 * Keeps versions that would be dropped but are sealed for a subject, where no other version leads to that subject: the version in
 * its place was made from a row that it alone names, or a kept version names its key.
 */
function keepNamingVersions(
  versions: readonly DraftedVersion[],
  leftByKey: ReadonlyMap<string, readonly DraftedVersion[]>,
): void {
  const namedKeys = new Set<string>();
  const noteNames = (version: DraftedVersion): void => draftedNamesOf(version).forEach((each) => namedKeys.add(each));
  for (const draftedVersion of versions) if (draftedVersion.isLeft) noteNames(draftedVersion);
  const droppedVersions = versions.filter((version) => {
    const { body, row, key, isLeft } = version;
    if (isLeft || body.ops[row] !== rowOp.put || draftedSubjectOf(version) === null) return false;
    return leftByKey.get(key)?.some((heirVersion) => heirVersion.isLeft && carriesNamesOf(heirVersion, version)) !== true;
  });
  const isVersionNeeded = (version: DraftedVersion): boolean =>
    namedKeys.has(version.key.slice(version.key.indexOf('\0') + 1)) ||
    (draftedNamesOf(version).length > 0 &&
      leftByKey.get(version.key)?.some(({ body, row, isLeft }) => isLeft && body.ops[row] === rowOp.put) === true);
  for (let waitingVersions = droppedVersions; ; ) {
    const neededVersions = waitingVersions.filter(isVersionNeeded);
    if (neededVersions.length === 0) return;
    for (const version of neededVersions) {
      version.isLeft = version.isKept = true;
      noteNames(version);
      let lastSuccessor = version;
      while (lastSuccessor.successor !== null && !lastSuccessor.successor.isLeft) lastSuccessor = lastSuccessor.successor;
      // The end of a row that was new goes with it, but for what is left of the row.
      if (lastSuccessor.successor === null) lastSuccessor.isLeft = true;
    }
    waitingVersions = waitingVersions.filter(({ isKept }) => !isKept);
  }
}

/** It leads to the same subject. */
function carriesNamesOf(heirVersion: DraftedVersion, version: DraftedVersion): boolean {
  const heirNames = new Set(draftedNamesOf(heirVersion));
  return (
    draftedSubjectOf(heirVersion) === draftedSubjectOf(version) &&
    draftedNamesOf(version).every((namedKey) => heirNames.has(namedKey))
  );
}

function draftedSubjectOf({ body: { subjects }, row }: DraftedVersion): string | null {
  return subjects === undefined ? null : (cellAt(subjects, 'string', row) as string | null);
}

function draftedNamesOf({ body: { type, cells }, row }: DraftedVersion): readonly string[] {
  const namingColumnList = namingColumns(type, { has: (name) => cells.columns.some((column) => column.name === name) });
  return cells.columns.flatMap((column) =>
    namingColumnList.includes(column.name) ? namesIn(cellAt(column.vector, column.type, row)) : [],
  );
}

/** Hands the closings of dropped versions to the versions in their place; a kept version is closed by its successor. */
function passClosesToHeirs(versions: Iterable<DraftedVersion>): void {
  for (const draftedVersion of versions) {
    let heirVersion = draftedVersion.successor;
    while (heirVersion !== null && !heirVersion.isLeft) heirVersion = heirVersion.successor;
    if (draftedVersion.isLeft) heirVersion?.closes.push(draftedVersion);
    else heirVersion?.closes.push(...draftedVersion.closes.filter((closedPosition) => typeof closedPosition === 'number'));
  }
}

function netBodyOf(
  body: RowsBody,
  finalVersions: readonly DraftedVersion[],
  replacementOf: (keptVersion: DraftedVersion) => DraftedVersion | undefined,
  isInTransaction: (instant: bigint | null) => boolean,
): RowsBody {
  const keptRows = Int32Array.from(finalVersions, ({ row }) => row);
  const keptBounds = finalVersions.map((keptVersion) => {
    const [validFrom, validTo] = draftedBoundsOf(body, keptVersion.row);
    const versionTime = (replacementOf(keptVersion) ?? keptVersion).time;
    return [isInTransaction(validFrom) ? versionTime : validFrom, isInTransaction(validTo) ? versionTime : validTo] as const;
  });
  const closeOffsets = new Uint32Array(finalVersions.length + 1);
  for (const [i, { closes }] of finalVersions.entries()) closeOffsets[i + 1] = closeOffsets[i]! + closes.length;
  const [keys, from, to] = body.keys.columns;
  const pickColumn = (column: NamedColumn, vector: Vector = gather(column.vector, keptRows)): NamedColumn => ({
    ...column,
    vector,
  });
  return {
    ...body,
    ops: Uint8Array.from(keptRows, (row) => body.ops[row]!),
    keys: {
      length: keptRows.length,
      columns: [
        pickColumn(keys!),
        pickColumn(from!, boundVector(keptBounds.map(([keptBound]) => keptBound))),
        pickColumn(to!, boundVector(keptBounds.map(([, keptBound]) => keptBound))),
      ],
    },
    closeOffsets,
    closes: Float64Array.from(
      finalVersions.flatMap(({ closes }) =>
        closes.map((closedVersion) => (typeof closedVersion === 'number' ? closedVersion : closedVersion.position)),
      ),
    ),
    cells: { length: keptRows.length, columns: body.cells.columns.map((column) => pickColumn(column)) },
    ...(body.subjects && { subjects: gather(body.subjects, keptRows) }),
  };
}

function draftedBoundsOf({ keys }: RowsBody, row: number): readonly [bigint | null, bigint | null] {
  return [boundAt(keys.columns[1]!.vector, row), boundAt(keys.columns[2]!.vector, row)];
}
