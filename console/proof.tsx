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

export function Proof({ systemFrom, row }: { systemFrom: string; row: string }) {
  const { value, error, isLoading } = useLoad(`${systemFrom}/${row}`, (signal) => loadProof(systemFrom, row, signal));
  const [isForged, setForged] = useState(false);
  if (error)
    return (
      <>
        <h2>Proof</h2>
        <Problem error={error} />
      </>
    );
  if (value === undefined)
    return (
      <>
        <h2>Proof</h2>
        <p class="soft">{isLoading ? 'Asking for the proof …' : ''}</p>
      </>
    );
  const { proof, key, held, verifier } = value;
  const verdict = verdictOf(() => verifier.verifyProof(isForged ? forged(proof, 'row', 40) : proof, key, held));
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
