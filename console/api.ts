/** Calls of the page: each carries the secret of its session, and the terms under which the person looks at the store. */
import { signal } from '@preact/signals';

export interface SessionView {
  readonly mount: string;
  readonly version: string;
  readonly profile: string;
  readonly demo: boolean;
  readonly administrator: boolean;
  readonly caller: {
    readonly principal: string;
    readonly tenant: string | null;
    readonly organization: string | null;
    readonly roles: readonly string[];
    readonly purposes: readonly string[];
  } | null;
  readonly acting: { readonly principal: string; readonly reason: string; readonly expires_at: string } | null;
}

export const mount = document.querySelector<HTMLMetaElement>('meta[name=mount]')?.content ?? '/workbench';
export const isConsole = mount !== '/workbench';
/** null: signed out; undefined: not known yet. */
export const session = signal<SessionView | null | undefined>(undefined);
/** Terms that every call of data states. */
export const terms = signal<{ readonly organization: string; readonly purpose: string; readonly branch: string }>({
  organization: '',
  purpose: '',
  branch: '',
});

const storageKey = `annals-session:${mount}`;

/** An answer other than success, in the server's own words. */
export class Refusal extends Error {
  readonly code: string;
  readonly status: number;
  readonly correlation: string;

  constructor(status: number, code: string, detail: string, correlation: string) {
    super(detail);
    this.status = status;
    this.code = code;
    this.correlation = correlation;
  }
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const secret = sessionStorage.getItem(storageKey);
  if (secret !== null) headers.set('x-annals-session', secret);
  if (typeof init.body === 'string' && !headers.has('content-type')) headers.set('content-type', 'application/json');
  const response = await fetch(mount + path, { ...init, headers, credentials: 'same-origin' });
  if (response.ok) return response;
  throw await refusalOf(response);
}

async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text();
  try {
    const { type, detail, correlation_id: correlation } = JSON.parse(text) as Record<string, string>;
    return new Refusal(response.status, type?.split(/[/:]/).at(-1) ?? '', detail ?? text, correlation ?? '');
  } catch {
    return new Refusal(response.status, '', text || response.statusText, '');
  }
}

/** A route of data, asked as the session's principal. */
export async function data(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const { organization, purpose, branch } = terms.value;
  if (organization !== '') headers.set('x-organization-id', organization);
  if (purpose !== '' && !headers.has('x-service-purpose')) headers.set('x-service-purpose', purpose);
  if (branch !== '' && branch !== 'main' && !headers.has('x-service-branch')) headers.set('x-service-branch', branch);
  try {
    return await call(`/api${path}`, { ...init, headers });
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) void resume();
    throw error;
  }
}

/** A route of the administrator. */
export const administer = (path: string, init: RequestInit = {}): Promise<Response> => call(`/administer${path}`, init);

export async function json<T>(response: Promise<Response>): Promise<T> {
  return parseExact(await (await response).text()) as T;
}

export const post = (body: unknown): RequestInit => ({ method: 'POST', body: JSON.stringify(body) });

/** JSON whose integers beyond 15 digits come as texts: a number of JavaScript would round them. */
export function parseExact(text: string): unknown {
  const lexeme = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  return JSON.parse(text.replace(lexeme, (part) => (/^-?\d{16,}$/.test(part) ? `"${part}"` : part)));
}

/** The session that this page or its cookie has; otherwise the page asks for a credential. */
export async function resume(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', location.pathname);
  try {
    if (code === undefined && sessionStorage.getItem(storageKey) !== null)
      session.value = await json<SessionView>(call('/session'));
    else await signIn(code === undefined ? {} : { code });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    sessionStorage.removeItem(storageKey);
    session.value = null;
  }
}

export async function signIn(body: Readonly<Record<string, string>>): Promise<void> {
  const { secret, ...view } = await json<SessionView & { secret: string }>(call('/session', post(body)));
  sessionStorage.setItem(storageKey, secret);
  session.value = view;
}

export async function signOut(): Promise<void> {
  await call('/session', { method: 'DELETE' }).catch(() => undefined);
  sessionStorage.removeItem(storageKey);
  session.value = null;
}

export async function useToken(token: string): Promise<void> {
  session.value = await json<SessionView>(call('/session/token', { method: 'PUT', body: JSON.stringify({ token }) }));
}

export async function actAs(tokenId: string, reason: string): Promise<void> {
  session.value = await json<SessionView>(call('/session/acting', post({ token_id: tokenId, reason })));
}

export async function stopActing(): Promise<void> {
  session.value = await json<SessionView>(call('/session/acting', { method: 'DELETE' }));
}
