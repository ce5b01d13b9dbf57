/** SANCTIONS_SCREEN: listings whose name is like one. Source: specification, "SQL dialect", the table of operators. */
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { NameIndex } from './names/name-index.ts';
import { plainJaccard } from './names/name-score.ts';

export const sanctionsScreen: TableFunction = domainFunction({
  name: 'SANCTIONS_SCREEN',
  summary: 'Listings whose name, or one of whose aliases, is like a name.',
  method: 'names/3',
  arguments: [
    { name: 'NAME', kind: 'text', required: true, summary: 'the name that is screened, in any script' },
    { name: 'THRESHOLD', kind: 'number', least: 0, most: 1, summary: 'the least score of a row; 0.75 by default' },
    { name: 'KIND', kind: 'text', summary: 'kind of the listings; those that say none are screened too' },
    { name: 'BIRTH_DATE', kind: 'text', summary: 'date or year of birth: listings that say another year score less' },
    { name: 'COUNTRY', kind: 'text', summary: 'country: listings that say another one score less' },
  ],
  roles: [{ role: 'listing' }],
  columns: [
    { name: 'name', type: 'string' },
    { name: 'plain_jaccard', type: 'number' },
    { name: 'features', type: 'json' },
    { name: 'list', type: 'string' },
    { name: 'list_version', type: 'string' },
  ],
  run: screen,
});

interface Listing {
  readonly nodeId: string | null;
  readonly type: string;
  /** null where it is masked: the aliases may still be there. */
  readonly name: string | null;
  readonly kind: string | null;
  readonly birthDate: string | null;
  readonly country: string | null;
  readonly program: string | null;
  readonly list: string | null;
  readonly systemFrom: bigint | null;
}

interface Listings {
  readonly all: readonly Listing[];
  readonly index: NameIndex;
  /** By list: the system time of its newest row. */
  readonly versions: ReadonlyMap<string, bigint>;
}

/** A score is multiplied by one of these where the listing says something else. */
const otherBirthYear = 0.7;
const otherCountry = 0.9;
const namesAtOnce = 64;

function* screen(call: DomainCall): Steps<readonly DomainRow[]> {
  const name = call.text('NAME')!;
  const threshold = call.number('THRESHOLD', 0.75);
  const [kind, birthDate, country] = [call.text('KIND'), call.text('BIRTH_DATE'), call.text('COUNTRY')];
  if (birthDate !== undefined && !/^\d{4}(-\d{2}){0,2}$/.test(birthDate)) {
    throw call.refuse('BIRTH_DATE', 'is a date or a year, such as 1970-01-31 or 1970');
  }
  const { all, index, versions } = yield* call.reuse('names', ['listing'], () => readListings(call));
  const rows: DomainRow[] = [];
  for (const { owner, name: alias, match } of yield* index.find(name, threshold, (count) => call.look(count * looksPerName))) {
    const listing = all[owner]!;
    if (kind !== undefined && listing.kind !== null && !isSame(kind, listing.kind)) continue;
    let { score } = match;
    const features = [...match.features];
    if (birthDate !== undefined && listing.birthDate !== null) {
      const isBorn = birthDate.slice(0, 4) === listing.birthDate.slice(0, 4);
      features.push(isBorn ? 'birth_date' : 'birth_date≠');
      if (!isBorn) score *= otherBirthYear;
    }
    if (country !== undefined && listing.country !== null) {
      const isThere = isSame(country, listing.country);
      features.push(isThere ? 'country' : 'country≠');
      if (!isThere) score *= otherCountry;
    }
    if (score < threshold - rounding) continue;
    const version = versions.get(listing.list ?? '');
    rows.push({
      nodeId: listing.nodeId,
      type: listing.type,
      cells: [
        listing.name,
        plainJaccard(name, alias),
        JSON.stringify(features),
        listing.list,
        version === undefined ? null : formatInstant(version),
      ],
      score,
      evidence: { alias, program: listing.program, threshold },
      systemFrom: listing.systemFrom,
    });
  }
  return rows;
}

/** A sum of thirds may stay below the whole. */
const rounding = 1e-9;

/** Comparing two names takes some microseconds. */
const looksPerName = 200;

function isSame(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}

function* readListings(call: DomainCall): Steps<{ readonly value: Listings; readonly bytes: number }> {
  const all: Listing[] = [];
  const names: [number, string][] = [];
  const versions = new Map<string, bigint>();
  yield* call.rows('listing', ['name', 'kind', 'aliases', 'birth_date', 'country', 'program', 'list'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const name = batch.text('name', row);
      const aliases = batch.list('aliases', row);
      if (name === null && aliases.length === 0) continue;
      const list = batch.text('list', row);
      const systemFrom = batch.systemFrom(row);
      const version = versions.get(list ?? '');
      if (systemFrom !== null && (version === undefined || systemFrom > version)) versions.set(list ?? '', systemFrom);
      const owner = all.push({
        nodeId: batch.nodeId(row),
        type: batch.type,
        name,
        kind: batch.text('kind', row),
        birthDate: batch.text('birth_date', row),
        country: batch.text('country', row),
        program: batch.text('program', row),
        list,
        systemFrom,
      });
      for (const each of new Set(name === null ? aliases : [name, ...aliases])) names.push([owner - 1, each]);
    }
    call.hold(all.length * 512);
  });
  const index = new NameIndex();
  for (const [i, [owner, name]] of names.entries()) {
    index.add(owner, name);
    if (i % namesAtOnce === namesAtOnce - 1) {
      call.look(namesAtOnce * looksPerName);
      call.hold(all.length * 512 + index.bytes);
      yield;
    }
  }
  const bytes = all.length * 512 + index.bytes;
  return { value: { all, index, versions }, bytes };
}
