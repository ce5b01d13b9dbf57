/** DETECT_IDENTITIES: what a text names somebody or something by. Source: specification, "SQL dialect", the table of operators. */
import { detectedLengthMax, detectIdentifiers } from '../../../projections/entity-resolution/detect.ts';
import { isRegion } from '../../../projections/entity-resolution/identifiers.ts';
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';

export const detectIdentities: TableFunction = domainFunction({
  name: 'DETECT_IDENTITIES',
  summary:
    'Identifiers within a text: phones, accounts, devices, wallets, ships, passports, and whether their check digits are right.',
  method: 'identifiers/1',
  arguments: [
    { name: 'TEXT', kind: 'text', required: true, summary: 'the text' },
    { name: 'REGION', kind: 'text', summary: "the country of phone numbers without a country code, as 'GB'; none by default" },
  ],
  roles: [],
  columns: [
    { name: 'kind', type: 'string' },
    { name: 'value', type: 'string' },
    { name: 'canonical', type: 'string' },
    { name: 'start', type: 'integer' },
    { name: 'end', type: 'integer' },
    { name: 'valid', type: 'boolean' },
  ],
  isOrdered: true,
  run: detectIdentifierRows,
});

/** A few dozen candidates, each parsed. */
const detectionLooks = 80_000;

function* detectIdentifierRows(detectionCall: DomainCall): Steps<readonly DomainRow[]> {
  const searchedText = detectionCall.text('TEXT')!;
  if (searchedText.length > detectedLengthMax) throw detectionCall.refuse('TEXT', `has at most ${detectedLengthMax} characters`);
  const phoneRegion = detectionCall.text('REGION');
  if (phoneRegion !== undefined && !isRegion(phoneRegion)) throw detectionCall.refuse('REGION', 'is a country in two letters');
  const detectionSteps = detectIdentifiers(searchedText, phoneRegion);
  let detectionStep = detectionSteps.next();
  for (; !detectionStep.done; detectionStep = detectionSteps.next()) {
    detectionCall.look(detectionLooks);
    yield;
  }
  return detectionStep.value.map(({ kind, value, canonical, start, end, valid }) => ({
    nodeId: null,
    type: null,
    cells: [kind, value, canonical, BigInt(start), BigInt(end), valid],
    score: valid ? 1 : 0,
    evidence: { kind, check: identifierChecks.get(kind) ?? 'form' },
  }));
}

/** By kind, the check that a value passes beside its form. */
const identifierChecks: ReadonlyMap<string, string> = new Map([
  ['phone', 'numbering plan'],
  ['iban', 'mod 97'],
  ['imei', 'luhn'],
  ['wallet', 'base58check, bech32 or EIP-55'],
  ['card', 'luhn'],
  ['vin', 'mod 11'],
  ['imo', 'mod 10'],
  ['lei', 'mod 97'],
  ['isin', 'luhn'],
  ['mrz', 'mod 10'],
]);
