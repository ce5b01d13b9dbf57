/** The plan as a picture: one box a line, its width the time that it took, its figures beside it. */
import { bytes, count } from './format.ts';

export interface Operator {
  readonly part: string;
  readonly depth: number;
  readonly operator: string;
  readonly line: string;
  readonly state: string;
  readonly rows_in: number | null;
  readonly rows_out: number | null;
  readonly rows_expected: number;
  readonly time_ms: number | null;
  readonly memory_bytes: number | null;
  readonly index: string | null;
}

export function Plan({ operators, lines }: { operators: readonly Operator[]; lines: readonly string[] }) {
  if (operators.length === 0) return <pre class="card">{lines.join('\n')}</pre>;
  const longest = Math.max(0.001, ...operators.map(({ time_ms: ms }) => ms ?? 0));
  return (
    <div class="card scroll" tabIndex={0} role="region" aria-label="plan">
      <table class="plain plan">
        <thead>
          <tr>
            <th scope="col">step</th>
            <th scope="col" class="number">
              rows in
            </th>
            <th scope="col" class="number">
              rows out
            </th>
            <th scope="col" class="number">
              expected
            </th>
            <th scope="col">time</th>
            <th scope="col" class="number">
              memory
            </th>
            <th scope="col">index</th>
          </tr>
        </thead>
        <tbody>
          {operators.map((each) => (
            <tr>
              <td style={{ paddingLeft: `${each.depth * 18}px` }}>
                <span class="mono">{each.line.trim()}</span> {each.part !== 'answer' && <span class="tag">{each.part}</span>}{' '}
                {each.state !== 'read' && <span class="tag warm">{each.state}</span>}
              </td>
              <td class="number">{each.rows_in === null ? '' : count(each.rows_in)}</td>
              <td class="number">{each.rows_out === null ? '' : count(each.rows_out)}</td>
              <td class={`number${isSurprise(each) ? ' changed' : ''}`}>{count(each.rows_expected)}</td>
              <td class="tight">
                {each.time_ms !== null && (
                  <>
                    <span class="meter" style={{ width: `${Math.round((each.time_ms / longest) * 90)}px` }} />{' '}
                    {each.time_ms.toFixed(3)} ms
                  </>
                )}
              </td>
              <td class="number">{each.memory_bytes === null ? '' : bytes(each.memory_bytes)}</td>
              <td>{each.index ?? ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Ten times more, or fewer, than the planner thought. */
function isSurprise({ rows_out: out, rows_expected: expected }: Operator): boolean {
  return out !== null && (out + 1) / (expected + 1) > 10;
}
