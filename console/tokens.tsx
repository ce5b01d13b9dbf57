/** Registry tokens, and acting as one of their principals: for fifteen minutes, with a reason, on record. */
import { useState } from 'preact/hooks';
import { actAs, administer, json, post, session } from './api.ts';
import { Doom } from './branches.tsx';
import { copy, Dialog, Head, Plain, Problem, useLoad } from './parts.tsx';
import { go } from './place.ts';

interface Token {
  readonly id: string;
  readonly tenant_id: string | null;
  readonly organization: string | null;
  readonly principal: string;
  readonly roles: readonly string[];
  readonly purposes: readonly string[];
  readonly expires_at: string | null;
}

export function Tokens() {
  const { value, error, reload } = useLoad(`tokens ${session.value?.acting?.expires_at}`, (signal) =>
    json<{ tokens: Token[] }>(administer('/admin/tokens', { signal })),
  );
  const [acting, setActing] = useState<Token | null>(null);
  const [doomed, setDoomed] = useState<Token | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const fail = (thrown: unknown): void => setFailed(thrown);
  const mint = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const field = (name: string): string => (form.elements.namedItem(name) as HTMLInputElement).value.trim();
    const list = (name: string): string[] =>
      field(name)
        .split(/[,\s]+/)
        .filter((each) => each !== '');
    const body = {
      principal: field('principal'),
      ...(field('tenant') && { tenant_id: field('tenant') }),
      roles: list('roles'),
      purposes: list('purposes'),
      ...(field('days') && { expires_in_secs: Number(field('days')) * 86_400 }),
    };
    json<{ token: string }>(administer('/admin/tokens', post(body))).then(({ token }) => {
      setSecret(token);
      setFailed(null);
      form.reset();
      reload();
    }, fail);
  };
  return (
    <>
      <Head title="Tokens and acting">Whoever holds a token is its principal.</Head>
      <Problem error={error ?? failed} />
      {value && (
        <Plain
          columns={['principal', 'tenant', 'roles', 'purposes', 'ends', '']}
          rows={value.tokens.map((each) => [
            each.principal,
            each.tenant_id ?? '–',
            each.roles.join(', ') || '–',
            each.purposes.join(', ') || 'any',
            each.expires_at?.slice(0, 16).replace('T', ' ') ?? 'never',
            <span class="bar">
              <button type="button" disabled={session.value!.acting !== null} onClick={() => setActing(each)}>
                Act as
              </button>
              <button type="button" class="bad" onClick={() => setDoomed(each)}>
                Revoke
              </button>
            </span>,
          ])}
        />
      )}
      <form class="card" onSubmit={mint}>
        <h2>Mint a token</h2>
        <div class="bar">
          <label>
            Principal <input name="principal" required size={14} />
          </label>
          <label>
            Tenant <input name="tenant" size={12} placeholder="none" />
          </label>
          <label>
            Roles <input name="roles" size={18} placeholder="none" />
          </label>
          <label>
            Purposes <input name="purposes" size={18} placeholder="any" />
          </label>
          <label>
            Days <input name="days" size={5} inputMode="numeric" pattern="\d{1,4}" placeholder="ever" />
          </label>
          <button type="submit" class="primary">
            Mint
          </button>
        </div>
      </form>
      {secret !== null && (
        <Dialog title="The token, shown once" close={() => setSecret(null)}>
          <pre>{secret}</pre>
          <p>
            <button type="button" onClick={() => void copy(secret)}>
              Copy
            </button>
          </p>
        </Dialog>
      )}
      {acting !== null && <Acting token={acting} close={() => setActing(null)} />}
      {doomed !== null && (
        <Doom
          name={doomed.principal}
          words={`Whoever holds this token of ${doomed.principal} is refused from the next request on.`}
          close={() => setDoomed(null)}
          go={() =>
            administer(`/admin/tokens/${doomed.id}`, { method: 'DELETE' })
              .then(reload, fail)
              .finally(() => setDoomed(null))
          }
        />
      )}
    </>
  );
}

function Acting({ token, close }: { token: Token; close: () => void }) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState<unknown>(null);
  const begin = (event: SubmitEvent): void => {
    event.preventDefault();
    actAs(token.id, reason).then(
      () => {
        close();
        go('home');
      },
      (thrown: unknown) => setError(thrown),
    );
  };
  return (
    <Dialog title={`Act as ${token.principal}`} close={close}>
      <p>You will see what {token.principal} sees, for fifteen minutes. The reason stands in the audit trail.</p>
      <form class="bar" onSubmit={begin}>
        <label for="reason">Reason</label>
        <input
          id="reason"
          required
          minLength={3}
          maxLength={500}
          size={40}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
        <button type="submit" class="primary">
          Act
        </button>
      </form>
      <Problem error={error} />
    </Dialog>
  );
}
