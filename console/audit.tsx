/** The audit trail: who asked what, when, for which purpose, and how it ended; one correlation id at a time, if one likes. */
import { administer, data, json, session } from './api.ts';
import { Head, Heading, Instant, Problem, useLoad } from './parts.tsx';
import { amend, link, place } from './place.ts';

interface Entry {
  readonly leaf_index: number;
  readonly index_in_entry: number;
  readonly time: string;
  readonly action: string;
  readonly principal: string;
  readonly organization: string | null;
  readonly door: string;
  readonly purpose: string | null;
  readonly object_type: string | null;
  readonly decision: string;
  readonly code: string | null;
  readonly template: string | null;
  readonly break_glass: string | null;
  readonly row_count: number;
  readonly duration_ms: number;
  readonly correlation_id: string;
  readonly entry_hash: string;
  readonly prev_hash: string;
}

interface Page {
  readonly entries: readonly Entry[];
  readonly next: string | null;
  readonly tree_size: number;
}

const filters = ['principal', 'object_type', 'action', 'since', 'until'] as const;

export function Audit() {
  const { params } = place.value;
  const { administrator, caller } = session.value!;
  const isWhole = administrator && (params['all'] === '1' || caller === null);
  const isRecent = !params['since'] && !params['after'] && !params['until'];
  const query = new URLSearchParams({ limit: isRecent ? '1000' : '200' });
  for (const each of filters) if (params[each]) query.set(each, params[each]);
  if (params['audit_purpose']) query.set('purpose', params['audit_purpose']);
  const { value: hourAgo } = useLoad(`${isRecent}`, async () => new Date(Date.now() - 3_600_000).toISOString());
  if (isRecent && hourAgo) query.set('since', hourAgo);
  if (params['after']) query.set('after', params['after']);
  const { value, error, reload } = useLoad(isRecent && !hourAgo ? null : `${isWhole} ${query}`, (signal) =>
    json<Page>(isWhole ? administer(`/admin/audit/entries?${query}`, { signal }) : data(`/audit/entries?${query}`, { signal })),
  );
  const correlation = params['correlation'] ?? '';
  const entries = (value?.entries ?? []).filter((each) => correlation === '' || each.correlation_id === correlation);
  if (isRecent) entries.reverse();
  return (
    <>
      <Head title="Audit">
        {value && (
          <>
            {isRecent && 'The last hour, newest first. '}Entries below {value.tree_size} are sealed.
          </>
        )}
      </Head>
      <div class="bar">
        {[...filters, 'audit_purpose' as const].map((each) => (
          <label class="small soft">
            {each === 'audit_purpose' ? 'purpose' : each.replace('_', ' ')}{' '}
            <input
              size={11}
              value={params[each] ?? ''}
              onChange={(event) => amend({ [each]: event.currentTarget.value.trim(), after: '' })}
            />
          </label>
        ))}
        {administrator && caller !== null && (
          <button type="button" aria-pressed={isWhole} onClick={() => amend({ all: isWhole ? '' : '1', after: '' })}>
            All tenants
          </button>
        )}
        <button type="button" onClick={reload}>
          Ask again
        </button>
        {correlation !== '' && (
          <button type="button" aria-pressed onClick={() => amend({ correlation: '' })}>
            Correlation {correlation.slice(0, 13)}… ×
          </button>
        )}
      </div>
      <Problem error={error} />
      <div class="scroll" tabIndex={0} role="region" aria-label="access records">
        <table class="plain">
          <thead>
            <tr>
              {['when', 'principal', 'action', 'type', 'purpose', 'decision', 'rows', 'ms', 'statement', 'entry', ''].map(
                (each) => (
                  <Heading text={each} />
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {entries.map((each) => (
              <tr>
                <td class="tight">
                  <Instant ns={each.time} />
                </td>
                <td class="tight">
                  {each.principal}
                  {each.organization && <div class="small soft">{each.organization}</div>}
                </td>
                <td class="tight">
                  {each.action}
                  <div class="small soft">{each.door}</div>
                </td>
                <td>{each.object_type ?? ''}</td>
                <td class="tight">{each.purpose ?? ''}</td>
                <td>
                  <span class={`tag ${each.decision === 'allow' ? 'good' : 'bad'}`}>{each.decision}</span>
                  {each.code && <div class="small soft">{each.code}</div>}
                </td>
                <td class="number tight">{each.row_count}</td>
                <td class="number tight">{each.duration_ms.toFixed(1)}</td>
                <td class="mono small wide">
                  {each.template}
                  {each.break_glass && <div class="tag warm">{each.break_glass}</div>}
                </td>
                <td title={`entry ${each.entry_hash}\nafter ${each.prev_hash}`} class="number">
                  {each.leaf_index}.{each.index_in_entry}
                </td>
                <td class="tight">
                  <button type="button" class="plain small" onClick={() => amend({ correlation: each.correlation_id })}>
                    Follow
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {value?.next && (
        <a class="button" href={link('audit', { ...params, after: value.next })}>
          Further
        </a>
      )}
    </>
  );
}
