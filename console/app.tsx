/** The frame around every view: terms on top, the tree on the left, the palette, and who is looking. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { isConsole, resume, session, signIn, signOut, stopActing, terms, useToken } from './api.ts';
import { agreements, branches, builtIn, catalogError, keptExhibits, loadCatalog, remembered, types, views } from './catalog.ts';
import { Problem } from './parts.tsx';
import { amend, go, link, place, takeTerms } from './place.ts';
import { Query, openType } from './query.tsx';
import { Home } from './home.tsx';

type View = ComponentType;
/** Views that are loaded when they are first shown. */
const later: Readonly<Record<string, () => Promise<View>>> = {
  row: async () => (await import('./row.tsx')).Row,
  difference: async () => (await import('./difference.tsx')).Difference,
  branches: async () => (await import('./branches.tsx')).Branches,
  search: async () => (await import('./search.tsx')).Search,
  memory: async () => (await import('./memory.tsx')).Memory,
  graph: async () => (await import('./graph.tsx')).Graph,
  watch: async () => (await import('./watch.tsx')).Watch,
  audit: async () => (await import('./audit.tsx')).Audit,
  exhibit: async () => (await import('./exhibit.tsx')).Exhibit,
  sharing: async () => (await import('./sharing.tsx')).Sharing,
  receipt: async () => (await import('./receipt.tsx')).Receipt,
  tenants: async () => (await import('./tenants.tsx')).Tenants,
  governance: async () => (await import('./governance.tsx')).Governance,
  tokens: async () => (await import('./tokens.tsx')).Tokens,
  dashboard: async () => (await import('./dashboard.tsx')).Dashboard,
  operations: async () => (await import('./operations.tsx')).Operations,
};

const everybody: readonly (readonly [view: string, title: string])[] = [
  ['home', 'Start'],
  ['query', 'Query'],
  ['search', 'Search'],
  ['graph', 'Graph'],
  ['memory', 'Memory'],
  ['watch', 'Watch'],
  ['branches', 'Branches'],
  ['audit', 'Audit'],
  ['exhibit', 'Exhibits'],
  ['receipt', 'Receipts'],
  ['sharing', 'Sharing'],
];
const administrators: readonly (readonly [view: string, title: string])[] = [
  ['dashboard', 'Dashboard'],
  ['governance', 'Policies'],
  ['tokens', 'Tokens and acting'],
  ['tenants', 'Tenants and usage'],
  ['operations', 'Operations'],
];

export function App() {
  useEffect(() => {
    takeTerms();
    void resume();
  }, []);
  const { value } = session;
  if (value === undefined) return <p class="signin soft">…</p>;
  return value === null ? <SignIn /> : <Shell />;
}

function SignIn() {
  const [error, setError] = useState<unknown>(null);
  const enter = (kind: 'admin' | 'token') => (event: SubmitEvent) => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem('secret') as HTMLInputElement;
    const secret = input.value.trim();
    input.value = '';
    signIn(secret === '' ? {} : { [kind]: secret }).catch((thrown: unknown) => setError(thrown));
  };
  return (
    <main class="signin">
      <Brand />
      <h1>{isConsole ? 'Console' : 'Workbench'}</h1>
      <p class="soft">Everything shown here is asked as somebody, under the rules for them, and on record.</p>
      {isConsole && (
        <form onSubmit={enter('admin')}>
          <label for="admin">Admin credential</label>
          <div class="row">
            <input id="admin" name="secret" type="password" autocomplete="off" />
            <button type="submit" class="primary">
              Enter
            </button>
          </div>
          <span class="small soft">Administers; reads no data by itself.</span>
        </form>
      )}
      <form onSubmit={enter('token')}>
        <label for="token">Registry token</label>
        <div class="row">
          <input id="token" name="secret" type="password" autocomplete="off" />
          <button type="submit" class={isConsole ? '' : 'primary'}>
            Enter
          </button>
        </div>
        <span class="small soft">Reads and writes what its principal may.</span>
      </form>
      <Problem error={error} />
      <p class="small soft">
        Or run <code>annals console</code> and follow the link, which is good for a minute.
      </p>
    </main>
  );
}

function Brand() {
  return (
    <a class="brand" href={link('home')}>
      <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M2 13 8 2l6 11M4.5 9h7" fill="none" stroke="currentColor" stroke-width="1.8" />
      </svg>
      Annals
    </a>
  );
}

function Shell() {
  const { view } = place.value;
  const current = session.value!;
  const [isPaletteOpen, setPalette] = useState(false);
  const whose = `${current.caller?.principal} ${current.acting?.expires_at} ${JSON.stringify(terms.value)}`;
  useEffect(() => void (current.caller ? loadCatalog() : undefined), [whose]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      setPalette(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('#main')?.focus();
        }}
      >
        To the content
      </a>
      <Top onPalette={() => setPalette(true)} />
      {current.acting ? (
        <div class="banner" role="status">
          <strong>Acting as {current.acting.principal}</strong>
          <span>{current.acting.reason}</span>
          <span class="spring" />
          <span>until {current.acting.expires_at.slice(11, 16)} UTC</span>
          <button type="button" onClick={() => void stopActing()}>
            Stop
          </button>
        </div>
      ) : (
        <div class="banner" hidden />
      )}
      <nav class="side" aria-label="views and types">
        <Views list={everybody} view={view} />
        {current.administrator && (
          <>
            <h3>Administration</h3>
            <Views list={administrators} view={view} />
          </>
        )}
        <Tree />
      </nav>
      <main class="main" id="main" tabIndex={0}>
        {current.caller === null && !administrators.some(([each]) => each === view) ? <NoToken /> : <Stage view={view} />}
      </main>
      {isPaletteOpen && <Palette close={() => setPalette(false)} />}
    </div>
  );
}

function Views({ list, view }: { list: readonly (readonly [string, string])[]; view: string }) {
  return (
    <div>
      {list.map(([each, title]) => (
        <a href={link(each)} aria-current={each === view ? 'page' : undefined}>
          <span>{title}</span>
        </a>
      ))}
    </div>
  );
}

function Tree() {
  const known = types.value.filter(({ name }) => !builtIn.has(name));
  const kept = types.value.filter(({ name }) => builtIn.has(name));
  return (
    <>
      <Problem error={catalogError.value} />
      <h3>Types</h3>
      <div>
        {known.map((type) => (
          <a href={openType(type.name)}>
            <span>{type.name}</span>
            {type.protected && <span class="tag warm">guarded</span>}
            {type.edge && <span class="faint small">edge</span>}
          </a>
        ))}
      </div>
      <Leaves title="Views" of={views.value.map(({ name }) => [openType(name), name])} />
      <Leaves
        title="Branches"
        of={
          branches.value.length > 1
            ? branches.value.map(({ name }) => [`#/branches?branch=${encodeURIComponent(name)}`, name])
            : []
        }
      />
      <Leaves title="Exhibits" of={keptExhibits.value.map(({ id, title }) => [link('exhibit', { id }), title])} />
      <Leaves
        title="Sharing"
        of={agreements.value.map(({ id, assigner, assignee, state }) => [
          link('sharing', { id }),
          `${assigner} → ${assignee}`,
          state === 'active' ? '' : state,
        ])}
      />
      <h3>Kept by the store</h3>
      <div>
        {kept.map((type) => (
          <a href={openType(type.name)}>
            <span class="soft">{type.name}</span>
          </a>
        ))}
      </div>
    </>
  );
}

/** A part of the tree; it is not there while it is empty. */
function Leaves({ title, of }: { title: string; of: readonly (readonly [href: string, name: string, note?: string])[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <div>
        {of.map(([href, name, note = '']) => (
          <a href={href}>
            <span>{name}</span>
            {note !== '' && <span class="faint small">{note}</span>}
          </a>
        ))}
      </div>
    </>
  );
}

function Top({ onPalette }: { onPalette: () => void }) {
  const { organization, purpose, branch } = terms.value;
  const current = session.value!;
  const take = (term: string) => (event: Event) => {
    amend({ [term]: (event.currentTarget as HTMLInputElement).value.trim() });
    takeTerms();
  };
  return (
    <header class="top">
      <Brand />
      {current.demo && <span class="tag warm">demonstration</span>}
      <label title="organisation path: its rows and those below it">
        <span>Path</span>
        <input value={organization} onChange={take('organization')} placeholder={current.caller?.organization ?? 'none'} />
      </label>
      <label>
        <span>Purpose</span>
        <input value={purpose} onChange={take('purpose')} placeholder="none" list="purposes" />
      </label>
      <datalist id="purposes">
        {current.caller?.purposes.map((each) => (
          <option value={each} />
        ))}
      </datalist>
      <label>
        <span>Branch</span>
        <select value={branch || 'main'} onChange={take('branch')}>
          {(branches.value.length > 0
            ? branches.value.map(({ name }) => name)
            : ['main', ...(branch === '' || branch === 'main' ? [] : [branch])]
          ).map((each) => (
            <option value={each}>{each}</option>
          ))}
        </select>
      </label>
      <button type="button" onClick={onPalette} title="types, views, earlier statements">
        Find <kbd class="small soft">Ctrl K</kbd>
      </button>
      <span class="spring" />
      <ThemeButton />
      <span class="small soft" title={current.caller?.roles.join(', ')}>
        {current.caller?.principal ?? 'administrator'}
        {current.administrator && current.caller !== null ? ' · administrator' : ''}
      </span>
      <button type="button" class="plain" onClick={() => void signOut()}>
        Sign out
      </button>
    </header>
  );
}

function ThemeButton() {
  const root = document.documentElement;
  const [theme, setTheme] = useState(localStorage.getItem('annals-theme') ?? '');
  useEffect(() => {
    if (theme === '') delete root.dataset['theme'];
    else root.dataset['theme'] = theme;
    localStorage.setItem('annals-theme', theme);
  }, [theme]);
  const next = theme === '' ? 'light' : theme === 'light' ? 'dark' : '';
  return (
    <button type="button" class="plain" title="theme" onClick={() => setTheme(next)}>
      {theme === '' ? 'Auto' : theme === 'light' ? 'Light' : 'Dark'}
    </button>
  );
}

function NoToken() {
  const [error, setError] = useState<unknown>(null);
  return (
    <section class="card" style={{ maxWidth: '640px' }}>
      <h2>The admin credential reads no data</h2>
      <p>
        Paste a registry token, or <a href={link('tokens')}>act as a principal</a>: for fifteen minutes, with a reason, on record.
      </p>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          const input = event.currentTarget.elements.namedItem('secret') as HTMLInputElement;
          useToken(input.value.trim()).catch((thrown: unknown) => setError(thrown));
          input.value = '';
        }}
      >
        <label for="paste">Registry token</label>
        <input id="paste" name="secret" type="password" autocomplete="off" size={36} />
        <button type="submit" class="primary">
          Use
        </button>
      </form>
      <Problem error={error} />
    </section>
  );
}

const loadedViews = new Map<string, View>([
  ['query', Query],
  ['home', Home],
]);

function Stage({ view }: { view: string }) {
  const [, setTurn] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const Shown = loadedViews.get(view);
  useEffect(() => {
    setError(null);
    const load = later[view];
    if (loadedViews.has(view) || load === undefined) return;
    load().then(
      (loaded) => {
        loadedViews.set(view, loaded);
        setTurn((n) => n + 1);
      },
      (thrown: unknown) => setError(thrown),
    );
  }, [view]);
  useEffect(() => {
    document.querySelector('#main')?.scrollTo(0, 0);
  }, [view]);
  if (error) return <Problem error={error} />;
  if (Shown) return <Shown key={`${view} ${session.value?.caller?.principal}`} />;
  return later[view] ? (
    <p class="soft">…</p>
  ) : (
    <p>
      No such page. <a href={link('home')}>To the start</a>
    </p>
  );
}

interface Found {
  readonly title: string;
  readonly kind: string;
  readonly href: string;
}

function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const all: Found[] = [
    ...[...everybody, ...(session.value?.administrator ? administrators : [])].map(([view, title]) => ({
      title,
      kind: 'view',
      href: link(view),
    })),
    ...types.value.map(({ name }) => ({ title: name, kind: 'type', href: openType(name) })),
    ...views.value.map(({ name }) => ({ title: name, kind: 'view of types', href: openType(name) })),
    ...branches.value.map(({ name }) => ({ title: name, kind: 'branch', href: `#/branches?branch=${encodeURIComponent(name)}` })),
    ...remembered().map((sql) => ({ title: sql.replaceAll(/\s+/g, ' '), kind: 'earlier', href: link('query', { sql }) })),
  ];
  const words = text.toLowerCase().split(/\s+/);
  const found = all.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))).slice(0, 60);
  const open = (one: Found | undefined): void => {
    if (one) location.hash = one.href;
    else if (text.trim() !== '') go('search', { q: text.trim() });
    close();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') close();
    else if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (event.key === 'Enter') open(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <div class="palette" onClick={(event) => event.target === event.currentTarget && close()}>
      <div role="dialog" aria-modal="true" aria-label="find">
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={found[at] && `found-${at}`}
          aria-label="find"
          autofocus
          placeholder="Type, view, branch, earlier statement; Enter searches rows"
          value={text}
          ref={(element) => element?.focus()}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKey}
        />
        <ul id="found" role="listbox" aria-label="found">
          {found.map((each, i) => (
            <li id={`found-${i}`} role="option" aria-selected={i === at} onClick={() => open(each)}>
              <span>{each.title}</span>
              <span class="soft small">{each.kind}</span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
