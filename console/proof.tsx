/** A row's proof, checked in this browser by the file that is handed over with it. */
import { useState } from 'preact/hooks';
import { data, json } from './api.ts';
import { Problem, useLoad } from './parts.tsx';
import { Checked, forged, verdictOf } from './verdict.tsx';
import type { Verifier } from './verifier.ts';

interface Head {
  readonly key: string;
  readonly origin: string;
  readonly tree_size: number;
  readonly checkpoint: string;
}

interface Loaded {
  readonly proof: string;
  readonly key: string;
  readonly verifier: Verifier;
  readonly held: string | null;
}

const headKey = (origin: string): string => `annals-head:${origin}`;

async function loadProof(systemFrom: string, row: string, signal: AbortSignal): Promise<Loaded> {
  const [head, verifier] = await Promise.all([
    json<Head>(data('/audit/log', { signal })),
    import('./verifier.ts').then(({ loadVerifier }) => loadVerifier()),
  ]);
  const held = localStorage.getItem(headKey(head.origin));
  // A head that was kept must be the beginning of the log of today.
  const from = held === null ? null : Number(held.split('\n')[1]);
  const query = new URLSearchParams({ system_from: systemFrom, row });
  const grown = from !== null && from > 0 && from < head.tree_size;
  if (grown) query.set('from', String(from));
  const proof = await (await data(`/audit/proof?${query}`, { signal })).text();
  return { proof, key: head.key, verifier, held: from !== null && from <= head.tree_size ? held : null };
}

/** Who wrote an entry, as its proof says: the words of the verifier, which quotes each name as JSON. */
export interface Writer {
  readonly principal: string;
  readonly door: string;
  readonly purpose: string | null;
}

const quoted = String.raw`("(?:[^"\\]|\\.)*")`;
const writerPattern = new RegExp(`, by ${quoted} through ${quoted}(?:, purpose ${quoted})?$`);

export interface RowProof {
  readonly loaded: Loaded;
  readonly steps: readonly string[];
  readonly failure: string | null;
  /** Null where nothing is proven. */
  readonly writer: Writer | null;
}

/** The proof of a version, checked once it is there. */
export function useProof(systemFrom: string, row: string) {
  const { value, error, isLoading } = useLoad(`${systemFrom}/${row}`, async (signal): Promise<RowProof> => {
    const loaded = await loadProof(systemFrom, row, signal);
    const verdict = verdictOf(() => loaded.verifier.verifyProof(loaded.proof, loaded.key, loaded.held));
    const found = verdict.steps.flatMap((step) => writerPattern.exec(step) ?? []);
    const [, principal, door, purpose] = found;
    const text = (literal: string): string => JSON.parse(literal) as string;
    const writer =
      principal === undefined || door === undefined
        ? null
        : { principal: text(principal), door: text(door), purpose: purpose === undefined ? null : text(purpose) };
    return { loaded, ...verdict, writer };
  });
  return { value, error, isLoading };
}

export function Proof({ value, error, isLoading }: ReturnType<typeof useProof>) {
  const [isForged, setForged] = useState(false);
  if (error || value === undefined)
    return (
      <>
        <h2>Proof</h2>
        <Problem error={error} />
        <p class="soft">{isLoading ? 'Asking for the proof …' : ''}</p>
      </>
    );
  const { proof, key, held, verifier } = value.loaded;
  const verdict = isForged ? verdictOf(() => verifier.verifyProof(forged(proof, 'row', 40), key, held)) : value;
  const checkpoint = JSON.parse(proof) as { checkpoint: string; origin: string };
  if (verdict.failure === null && !isForged) localStorage.setItem(headKey(checkpoint.origin), checkpoint.checkpoint);
  return (
    <Checked
      title="Proof"
      verdict={verdict}
      isForged={isForged}
      onForge={setForged}
      files={[
        { label: 'Proof', name: 'proof.json', text: proof, type: 'application/json' },
        { label: 'Verifier', name: 'annals-verify.mjs', text: verifier.text, type: 'text/javascript' },
        { label: 'Key', name: 'annals.key', text: `${key}\n`, type: 'text/plain' },
      ]}
    >
      Offline: <code>node annals-verify.mjs proof.json --key annals.key</code>
      <br />
      SHA-256 of the verifier, which is the file that ran here: <code>{verifier.sha256}</code>
    </Checked>
  );
}
