/** A row's proof, checked in this browser by the file that is handed over with it. */
import { useState } from 'preact/hooks';
import { data, json } from './api.ts';
import { Problem, save, useLoad } from './parts.tsx';
import type { Verifier } from './verifier.ts';

interface Head {
  readonly key: string;
  readonly origin: string;
  readonly tree_size: number;
  readonly checkpoint: string;
}

interface Checked {
  readonly proof: string;
  readonly key: string;
  readonly verifier: Verifier;
  readonly held: string | null;
}

const headKey = (origin: string): string => `annals-head:${origin}`;

async function loadProof(systemFrom: string, row: string, signal: AbortSignal): Promise<Checked> {
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

type Verdict = { readonly steps: readonly string[]; readonly failure: string | null };

function judge({ verifier, key, held }: Checked, proof: string): Verdict {
  try {
    return { steps: verifier.verifyProof(proof, key, held), failure: null };
  } catch (error) {
    return { steps: [], failure: (error as Error).message };
  }
}

/** One character of the row's own bytes, another one of base64. */
function forge(proof: string): string {
  return proof.replace(/("row":"[\w+/]{40})(.)/, (_, before: string, letter: string) => before + (letter === 'A' ? 'B' : 'A'));
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
  const verdict = judge(value, isForged ? forge(value.proof) : value.proof);
  const checkpoint = JSON.parse(value.proof) as { checkpoint: string; origin: string };
  if (verdict.failure === null && !isForged) localStorage.setItem(headKey(checkpoint.origin), checkpoint.checkpoint);
  return (
    <>
      <div class="head">
        <h2>Proof</h2>
        {verdict.failure === null ? (
          <span class="tag good">proven in this browser</span>
        ) : (
          <span class="tag bad">not proven</span>
        )}
      </div>
      <ol class="steps" aria-live="polite">
        {verdict.steps.map((step) => (
          <li class="good">
            <span>{step}</span>
          </li>
        ))}
        {verdict.failure !== null && (
          <li class="bad">
            <span>{verdict.failure}</span>
          </li>
        )}
      </ol>
      <div class="bar" style={{ marginTop: '10px' }}>
        <button type="button" aria-pressed={isForged} onClick={() => setForged(!isForged)}>
          {isForged ? 'The bytes as they came' : 'Change one byte'}
        </button>
        <button type="button" onClick={() => save('proof.json', value.proof, 'application/json')}>
          Proof
        </button>
        <button type="button" onClick={() => save('annals-verify.mjs', value.verifier.text, 'text/javascript')}>
          Verifier
        </button>
        <button type="button" onClick={() => save('annals.key', `${value.key}\n`, 'text/plain')}>
          Key
        </button>
      </div>
      <p class="small soft" style={{ marginTop: '8px' }}>
        Offline: <code>node annals-verify.mjs proof.json --key annals.key</code>
        <br />
        SHA-256 of the verifier, which is the file that ran here: <code>{value.verifier.sha256}</code>
      </p>
    </>
  );
}
