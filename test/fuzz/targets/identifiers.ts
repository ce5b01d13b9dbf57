/**
 * Identifiers in any text. What must hold: what is found lies where it says, overlaps nothing, is valid exactly where it has a form, and
 * the form of a form is itself.
 */
import { assert } from '../../../src/errors.ts';
import { detectIdentifiers } from '../../../src/projections/entity-resolution/detect.ts';
import { canonicalIdentifier } from '../../../src/projections/entity-resolution/identifiers.ts';

export const name = 'identifiers';

export function seeds(): Uint8Array[] {
  return [
    'call +44 20 7946 0018, (020) 7946-0018 or mail Ann@example.org at www.example.org',
    'GB29 NWBK 6016 1331 9268 19 DEUTDEFF 4111 1111 1111 1111 49-015420-323751-8',
    '192.0.2.7 2001:db8::1 00:1a:2b:3c:4d:5e 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    '1M8GDM9AXKP042788 IMO 9074729 MMSI 366123456 529900T8BM49AURSDO55 US0378331005',
    'P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10',
  ].map((text) => Buffer.from(text));
}

export function run(bytes: Uint8Array): void {
  const text = Buffer.from(bytes.subarray(0, 2_000)).toString('utf8');
  const steps = detectIdentifiers(text, 'GB');
  let step = steps.next();
  while (!step.done) step = steps.next();
  const points = Array.from(text);
  let end = 0;
  for (const { kind, value, canonical, start, end: to, valid } of step.value) {
    assert(start >= end && points.slice(start, to).join('') === value, 'it lies where it says, behind the one before');
    assert(valid === (canonical !== null), 'what is valid has a form');
    if (canonical !== null && kind !== 'mrz')
      assert(canonicalIdentifier(kind, canonical) === canonical, `the form of a ${kind} is its own`);
    end = to;
  }
}
