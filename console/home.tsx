/** The start: stories where the store holds some, else the types that there are. */
import { data, json, parseExact, post, session } from './api.ts';
import { builtIn, remembered, types } from './catalog.ts';
import { Head, useLoad } from './parts.tsx';
import { link, type Params } from './place.ts';
import { openType } from './query.tsx';

/** Rows of the type Story, which `annals demo` writes: a view, and what it shows. */
export interface Story {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly view: string;
  readonly params: string;
}

export function Home() {
  const hasStories = types.value.some(({ name }) => name === 'Story');
  const { value: stories } = useLoad(hasStories ? 'stories' : null, async (signal) => {
    const reply = await json<{ rows: Story[] }>(
      data('/query', {
        ...post({ sql: 'SELECT id, title, text, view, params FROM Story AS OF CURRENT ORDER BY id LIMIT 20' }),
        signal,
      }),
    );
    return reply.rows;
  });
  const own = types.value
    .filter(({ name, properties }) => Object.keys(properties).length > 0 && name !== 'Story' && !builtIn.has(name))
    .slice(0, 12);
  return (
    <>
      <Head title={session.value?.demo ? 'A store to look around in' : 'Start'}>
        What was known, when, by whom, and how one can be sure of it.
      </Head>
      {stories && (
        <section aria-label="stories">
          <div class="cards">
            {stories.map((story, i) => (
              <a class="card" href={link(story.view, paramsOf(story))}>
                <h2>
                  {i + 1}. {story.title}
                </h2>
                <p>{story.text}</p>
              </a>
            ))}
          </div>
        </section>
      )}
      {own.length > 0 && (
        <section aria-label="types">
          <h2>Types</h2>
          <div class="cards">
            {own.map((type) => (
              <a class="card" href={openType(type.name)}>
                <h2>{type.name}</h2>
                <p class="small">{Object.keys(type.properties).slice(0, 9).join(', ')}</p>
              </a>
            ))}
          </div>
        </section>
      )}
      {types.value.length === 0 && (
        <section class="card">
          <h2>Nothing here yet</h2>
          <p>
            Rows come in by <code>annals ingest</code> or any door. <code>annals demo</code> fills an empty store with something
            to look at.
          </p>
        </section>
      )}
      {remembered().length > 0 && (
        <section aria-label="earlier statements">
          <h2>Earlier statements</h2>
          <p class="small soft">Kept in this browser alone.</p>
          {remembered()
            .slice(0, 8)
            .map((sql) => (
              <p class="mono">
                <a href={link('query', { sql })}>{sql.replaceAll(/\s+/g, ' ').slice(0, 140)}</a>
              </p>
            ))}
        </section>
      )}
    </>
  );
}

function paramsOf({ params }: Story): Params {
  const parsed = parseExact(params);
  return typeof parsed === 'object' && parsed !== null ? (parsed as Params) : {};
}
