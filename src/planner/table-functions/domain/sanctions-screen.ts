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
  run: screenName,
});

interface SanctionsListing {
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

interface SanctionsListings {
  readonly all: readonly SanctionsListing[];
  readonly index: NameIndex;
  /** By list: the system time of its newest row. */
  readonly versions: ReadonlyMap<string, bigint>;
}

/** A score is multiplied by one of these where the listing says something else. */
const otherBirthYearFactor = 0.7;
const otherCountryFactor = 0.9;
const listingNamesAtOnce = 64;

function* screenName(screenCall: DomainCall): Steps<readonly DomainRow[]> {
  const screenedName = screenCall.text('NAME')!;
  const screenThreshold = screenCall.number('THRESHOLD', 0.75);
  const [kind, birthDate, country] = [screenCall.text('KIND'), screenCall.text('BIRTH_DATE'), screenCall.text('COUNTRY')];
  if (birthDate !== undefined && !/^\d{4}(-\d{2}){0,2}$/.test(birthDate)) {
    throw screenCall.refuse('BIRTH_DATE', 'is a date or a year, such as 1970-01-31 or 1970');
  }
  const {
    all: allListings,
    index: listingIndex,
    versions: listVersions,
  } = yield* screenCall.reuse('names', ['listing'], () => readSanctionsListings(screenCall));
  const screenRows: DomainRow[] = [];
  for (const { owner, name: alias, match } of yield* listingIndex.find(screenedName, screenThreshold, (count) =>
    screenCall.look(count * looksPerListingName),
  )) {
    const listing = allListings[owner]!;
    if (kind !== undefined && listing.kind !== null && !isSameIgnoringCase(kind, listing.kind)) continue;
    let { score: screenScore } = match;
    const matchFeatures = [...match.features];
    if (birthDate !== undefined && listing.birthDate !== null) {
      const isBornThatYear = birthDate.slice(0, 4) === listing.birthDate.slice(0, 4);
      matchFeatures.push(isBornThatYear ? 'birth_date' : 'birth_date≠');
      if (!isBornThatYear) screenScore *= otherBirthYearFactor;
    }
    if (country !== undefined && listing.country !== null) {
      const isThatCountry = isSameIgnoringCase(country, listing.country);
      matchFeatures.push(isThatCountry ? 'country' : 'country≠');
      if (!isThatCountry) screenScore *= otherCountryFactor;
    }
    if (screenScore < screenThreshold - thresholdRounding) continue;
    const listVersion = listVersions.get(listing.list ?? '');
    screenRows.push({
      nodeId: listing.nodeId,
      type: listing.type,
      cells: [
        listing.name,
        plainJaccard(screenedName, alias),
        JSON.stringify(matchFeatures),
        listing.list,
        listVersion === undefined ? null : formatInstant(listVersion),
      ],
      score: screenScore,
      evidence: { alias, program: listing.program, threshold: screenThreshold },
      systemFrom: listing.systemFrom,
    });
  }
  return screenRows;
}

/** A sum of thirds may stay below the whole. */
const thresholdRounding = 1e-9;

/** Comparing two names takes some microseconds. */
const looksPerListingName = 200;

function isSameIgnoringCase(leftText: string, rightText: string): boolean {
  return leftText.toLowerCase() === rightText.toLowerCase();
}

function* readSanctionsListings(screenCall: DomainCall): Steps<{ readonly value: SanctionsListings; readonly bytes: number }> {
  const allListings: SanctionsListing[] = [];
  const listingNames: [number, string][] = [];
  const listVersions = new Map<string, bigint>();
  yield* screenCall.rows('listing', ['name', 'kind', 'aliases', 'birth_date', 'country', 'program', 'list'], (listingBatch) => {
    for (let listingRow = 0; listingRow < listingBatch.count; listingRow++) {
      const name = listingBatch.text('name', listingRow);
      const listingAliases = listingBatch.list('aliases', listingRow);
      if (name === null && listingAliases.length === 0) continue;
      const listingList = listingBatch.text('list', listingRow);
      const systemFrom = listingBatch.systemFrom(listingRow);
      const listVersion = listVersions.get(listingList ?? '');
      if (systemFrom !== null && (listVersion === undefined || systemFrom > listVersion))
        listVersions.set(listingList ?? '', systemFrom);
      const listingOrdinal = allListings.push({
        nodeId: listingBatch.nodeId(listingRow),
        type: listingBatch.type,
        name,
        kind: listingBatch.text('kind', listingRow),
        birthDate: listingBatch.text('birth_date', listingRow),
        country: listingBatch.text('country', listingRow),
        program: listingBatch.text('program', listingRow),
        list: listingList,
        systemFrom,
      });
      for (const listingName of new Set(name === null ? listingAliases : [name, ...listingAliases]))
        listingNames.push([listingOrdinal - 1, listingName]);
    }
    screenCall.hold(allListings.length * 512);
  });
  const listingIndex = new NameIndex();
  for (const [i, [owner, name]] of listingNames.entries()) {
    listingIndex.add(owner, name);
    if (i % listingNamesAtOnce === listingNamesAtOnce - 1) {
      screenCall.look(listingNamesAtOnce * looksPerListingName);
      screenCall.hold(allListings.length * 512 + listingIndex.bytes);
      yield;
    }
  }
  const listingBytes = allListings.length * 512 + listingIndex.bytes;
  return { value: { all: allListings, index: listingIndex, versions: listVersions }, bytes: listingBytes };
}
