/** What programs of Node are written with: a builder of queries, and mappers of objects. */
import type { Client } from './list.ts';

const knex: Client = {
  name: 'knex',
  door: 'relational',
  package: 'knex@3.3.0 pg@8.23.1',
  registry: 'npm',
  probe: `node -e "require('knex'); require('pg')"`,
  steps: ({ port, secret }) => [
    {
      name: 'schema, rows in and out, upserts, transactions, broken constraints',
      script: `cat > knex.cjs <<'END'
const connection = { host: '127.0.0.1', port: ${port}, user: 'me', password: '${secret}', database: 'annals' };
const knex = require('knex')({ client: 'pg', connection });
(async () => {
  await knex.schema.createTable('crate', (t) => {
    t.bigInteger('id').primary();
    t.string('name').notNullable();
    t.timestamp('at');
    t.jsonb('more');
  });
  console.log(await knex.schema.hasTable('crate'), await knex.schema.hasColumn('crate', 'at'));
  const at = new Date('2024-05-01T12:00:00+02:00');
  await knex('crate').insert([{ id: 1, name: "O'Hara \\\\", at, more: { a: [1] } }, { id: 2, name: 'b' }]);
  console.log(JSON.stringify(await knex('crate').insert({ id: 3, name: 'c' }).returning('id')));
  await knex('crate').insert([{ id: 3, name: 'C' }, { id: 4, name: 'd' }]).onConflict('id').merge();
  await knex('crate').insert({ id: 4, name: 'x' }).onConflict('id').ignore();
  console.log(JSON.stringify(await knex('crate').where({ at }).whereIn('id', [1, 2]).first('id', 'name', 'at', 'more')));
  console.log(await knex('crate').where({ id: 2 }).update({ name: 'B' }), await knex('crate').where({ id: 4 }).del());
  await knex.transaction(async (t) => {
    await t('crate').insert({ id: 5, name: 'e' });
    await t('crate').insert({ id: 6, name: 'f' });
  });
  await knex.transaction(async (t) => {
    await t('crate').insert({ id: 7, name: 'g' });
    throw new Error('given up');
  }).catch((error) => console.log(error.message));
  await knex('crate').insert({ id: 5, name: 'e' }).catch((error) => console.log(error.code, error.constraint));
  await knex('crate').insert({ id: 9 }).catch((error) => console.log(error.code, error.column));
  console.log((await knex.raw('SELECT ?? || ? AS names FROM ?? WHERE id = ?', ['name', '+', 'crate', 3])).rows[0].names);
  console.log(String(await knex('crate as a').join('crate as b', 'a.id', 'b.id').orderBy('a.id').limit(2).offset(1).pluck('a.id')));
  await knex.destroy();
})();
END
node knex.cjs`,
      prints:
        /true true\n\[\{"id":"3"\}\]\n\{"id":"1","name":"O'Hara \\\\","at":"2024-05-01T10:00:00\.000Z","more":\{"a":\[1\]\}\}\n1 1\ngiven up\n23505 crate_pkey\n23502 name\nC\+\n2,3\n/,
    },
  ],
};

const sequelize: Client = {
  name: 'Sequelize',
  door: 'relational',
  package: 'sequelize@6.37.8 pg@8.23.1 pg-hstore@2.3.4',
  registry: 'npm',
  probe: `node -e "require('sequelize'); require('pg-hstore')"`,
  steps: ({ port, secret }) => [
    {
      name: 'its defaults: a model, rows in and out, upserts, raw questions, transactions',
      script: `cat > sequelize.cjs <<'END'
const { Sequelize, DataTypes, Op } = require('sequelize');
const s = new Sequelize('annals', 'me', '${secret}', { host: '127.0.0.1', port: ${port}, dialect: 'postgres', logging: false });
(async () => {
  await s.authenticate();
  const id = { type: DataTypes.BIGINT, primaryKey: true };
  const Book = s.define('Book', {
    id, title: { type: DataTypes.STRING, allowNull: false }, at: DataTypes.DATE, weight: DataTypes.DOUBLE, more: DataTypes.JSONB,
  });
  const Page = s.define('Page', { id, bookId: DataTypes.BIGINT });
  Book.hasMany(Page, { foreignKey: 'bookId', constraints: false });
  await s.sync();
  await s.sync();
  const at = new Date('2024-05-01T10:00:00.123Z');
  await Book.create({ id: 1, title: "O'Hara \\\\", at, weight: 0.5, more: { a: [1] } });
  await Book.bulkCreate([{ id: 2, title: 'b' }, { id: 3, title: 'c' }]);
  await Page.create({ id: 1, bookId: 1 });
  const one = await Book.findOne({ where: { at }, include: Page });
  console.log(one.title, one.at.toISOString(), JSON.stringify(one.more), one.Pages.length, one.createdAt instanceof Date);
  await Book.upsert({ id: 3, title: 'C' });
  await Book.update({ title: 'B' }, { where: { id: 2 } });
  await one.increment('weight', { by: 2 });
  const { count, rows } = await Book.findAndCountAll({ where: { id: { [Op.in]: [1, 2, 3] }, title: { [Op.iLike]: '%b%' } } });
  console.log(count, rows[0].title, (await one.reload()).weight, await Book.max('id'), await Book.count());
  await s.transaction((transaction) => Book.update({ weight: 1 }, { where: {}, transaction }));
  await s.transaction(async (transaction) => {
    await Book.destroy({ where: {}, transaction });
    throw new Error('given up');
  }).catch((error) => console.log(error.message));
  await Book.create({ id: 1, title: 'x' }).catch((error) => console.log(error.name));
  await one.destroy();
  const raw = await s.query('SELECT title, weight FROM "Books" WHERE id > :id ORDER BY id', { replacements: { id: 0 }, type: 'SELECT' });
  console.log(JSON.stringify(raw), JSON.stringify(await s.query('SELECT $1::int + 1 AS n', { bind: [4], type: 'SELECT' })));
  await s.close();
})();
END
node sequelize.cjs`,
      prints:
        /O'Hara \\ 2024-05-01T10:00:00\.123Z \{"a":\[1\]\} 1 true\n1 B 2\.5 3 3\ngiven up\nSequelizeUniqueConstraintError\n\[\{"title":"B","weight":1\},\{"title":"C","weight":1\}\] \[\{"n":"?5"?\}\]\n/,
    },
  ],
};

const mongoose: Client = {
  name: 'mongoose',
  door: 'document',
  package: 'mongoose@8.24.10',
  registry: 'npm',
  probe: `node -e "require('mongoose')"`,
  steps: ({ port, secret }) => [
    {
      name: 'models, validators, populate, upserts, bulk writes, cursors',
      script: `cat > mongoose.cjs <<'END'
const mongoose = require('mongoose');
(async () => {
  await mongoose.connect('mongodb://me:${secret}@127.0.0.1:${port}/annals');
  const { Schema, model } = mongoose;
  const Author = model('Author', new Schema({ name: { type: String, required: true } }));
  const schema = { title: { type: String, required: true }, pages: { type: Number, min: 1 }, tags: [String], more: Map };
  const Book = model('Book', new Schema({ ...schema, author: { type: Schema.ObjectId, ref: 'Author' } }, { timestamps: true }));
  await Book.init();
  const author = await Author.create({ name: 'A' });
  const book = await new Book({ title: 't', pages: 3, tags: ['x'], author, more: { k: 1 } }).save();
  await new Book({ pages: 0 }).save().catch((error) => console.log(Object.keys(error.errors).sort().join()));
  book.pages = 5;
  book.tags = ['x', 'y'];
  await book.save();
  const again = await Book.findById(book._id).populate('author');
  console.log(again.author.name, again.tags.join(), again.more.get('k'), again.createdAt < again.updatedAt);
  console.log((await Book.updateOne({ title: 't' }, { $inc: { pages: 1 } }, { runValidators: true })).modifiedCount);
  await Book.updateOne({ title: 't' }, { pages: 0 }, { runValidators: true }).catch((error) => console.log(error.name));
  console.log((await Book.findOneAndUpdate({ title: 'u' }, { pages: 2 }, { upsert: true, new: true })).pages);
  await Book.insertMany([{ title: 'v' }, { title: 'w' }]);
  const update = { updateOne: { filter: { title: 'v' }, update: { $set: { pages: 9 } } } };
  const { modifiedCount, deletedCount } = await Book.bulkWrite([update, { deleteOne: { filter: { title: 'w' } } }]);
  const titles = [];
  for await (const { title } of Book.find({ pages: { $gt: 1 } }).sort('title').cursor({ batchSize: 1 })) titles.push(title);
  console.log(modifiedCount, deletedCount, titles.join(), JSON.stringify(await Book.find({ tags: 'y' }).select('title -_id').lean()));
  console.log(JSON.stringify(await Book.aggregate([{ $group: { _id: null, n: { $sum: '$pages' } } }])));
  await Book.create({ _id: book._id, title: 'x' }).catch((error) => console.log(error.code));
  console.log((await Book.findByIdAndDelete(book._id)).title, await Book.countDocuments());
  await mongoose.disconnect();
})();
END
node mongoose.cjs`,
      prints:
        /pages,title\nA x,y 1 true\n1\nValidationError\n2\n1 1 t,u,v \[\{"title":"t"\}\]\n\[\{"_id":null,"n":17\}\]\n11000\nt 2\n/,
    },
  ],
};

export const mapperClients: readonly Client[] = [knex, sequelize, mongoose];
