/** The address of the page: the view and all that it shows, behind the #, which no browser sends to a server. */
import { computed, signal } from '@preact/signals';
import { terms } from './api.ts';

export type Params = Readonly<Record<string, string>>;

/** A one-time code is no place, and leaves the address before anything is shown. */
const hash = signal(location.hash.startsWith('#code=') ? '' : location.hash);
const startView = location.pathname.endsWith('/dashboard') ? 'dashboard' : 'home';

export const place = computed(() => {
  const [view = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  return { view: view || startView, params: Object.fromEntries(new URLSearchParams(query)) as Params };
});

/** Terms stay in the address from view to view, so that a link says all of what it shows. */
export function link(view: string, params: Params = {}): string {
  const { organization, purpose, branch } = terms.value;
  const all = { ...(organization && { organization }), ...(purpose && { purpose }), ...(branch && { branch }), ...params };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value !== '')).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}

export function go(view: string, params: Params = {}): void {
  location.hash = link(view, params);
}

/** Changes the address without a step of the browser's history. */
export function amend(params: Params): void {
  const { view, params: before } = place.value;
  history.replaceState(null, '', link(view, { ...before, ...params }));
  hash.value = location.hash;
}

export function takeTerms(): void {
  const { organization = '', purpose = '', branch = '' } = place.value.params;
  const { value } = terms;
  if (value.organization !== organization || value.purpose !== purpose || value.branch !== branch)
    terms.value = { organization, purpose, branch };
}

addEventListener('hashchange', () => {
  hash.value = location.hash;
  takeTerms();
});
