/** Words that names are made of and that say little or nothing about who bears them. Everything is in Latin letters. */

import { spellingOf } from './name-sounds.ts';

function nameWordsOf(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/** Titles and forms of address: no part of a name. */
export const honorifics = nameWordsOf(
  'mr mrs ms miss mx dr prof professor sir dame lord lady rev reverend fr father imam sheikh shaykh sheik shaikh haji hajji hajj ' +
    'mullah maulana mawlawi ayatollah hojjatoleslam sayyid sayed general gen colonel col major maj captain capt lieutenant lt sgt ' +
    'admiral brigadier commander minister president senator hon honourable honorable herr frau dott dottor sig signor signora mme mlle ' +
    'monsieur madame senor senora don dona sri shri smt pan pani gospodin esq phd md jr sr doctor king prince princess queen emir ' +
    'tovarisch ing mag',
);

/** Words before the name of a ship. */
export const shipPrefixes = nameWordsOf('mv mt ms ss my mts msc lpg lng vessel ship tanker');

/** Little words inside names; they count for little. */
export const particles = nameWordsOf(
  'al el ul ur as ash ad an bin ben ibn bint abu van von der den de di da do dos das du la le los las del della dei zu zur zum af av ' +
    'ter ten y e i of the and und et for',
);

/** Endings of companies' names, by what they say of the company, slips of the hand among them; spaces stand between words. */
const legalFormNames: Readonly<Record<string, string>> = {
  limited:
    'ltd|limited|llc|llp|lllp|lp|gmbh|gmbh und co kg|gmbh co kg|kg|ug|ooo|tov|sarl|srl|sprl|bvba|bv|b v|sp z o o|spzoo|sp zoo|kft|doo|d o o|eood|ood|' +
    'uab|sia|ou|osauhing|as|aps|pty ltd|pty|pte ltd|pte|pvt ltd|pvt|private limited|sdn bhd|sdn|bhd|co ltd|co|company limited|coltd|ltda|lda|' +
    'limitada|s r o|sro|spol s r o|s r l|limited liability company|limited liability partnership|societe a responsabilite limitee|' +
    'gesellschaft mit beschrankter haftung|obshchestvo s ogranichennoy otvetstvennostyu|fze|fzco|fzc|fz llc|dmcc|wll|yugen kaisha|yk|ltd sti|sti|' +
    'youxian gongsi|you xian gong si|ab|oy|a b|o y|l l c|l t d|ltd co|hk ltd|company|ldt|ld|gbmh|gbh|gmh|gmhb|lcl|gongsi|gong si|ji tuan|jituan',
  stock:
    'inc|incorporated|corp|corporation|plc|p l c|ag|a g|sa|s a|spa|s p a|nv|n v|pao|oao|zao|ao|jsc|pjsc|ojsc|cjsc|oyj|asa|abp|se|kk|k k|kabushiki kaisha|' +
    'kabushikigaisha|sa de cv|s a de c v|sab de cv|tbk|pt|joint stock company|public joint stock company|open joint stock company|' +
    'closed joint stock company|public limited company|aktiengesellschaft|societe anonyme|sociedad anonima|societa per azioni|' +
    'aktsionernoe obshchestvo|publichnoe aktsionernoe obshchestvo|zrt|nyrt|a s|anonim sirketi|saog|saoc|qsc|bsc|sae|jusik hoesa|chusik hoesa',
};

/** The meanings of legal forms, by their words with a space between. */
export const legalForms: ReadonlyMap<string, string> = new Map(
  Object.entries(legalFormNames).flatMap(([legalFormMeaning, names]) =>
    names.split('|').map((name): [string, string] => [name, legalFormMeaning]),
  ),
);
export const legalFormWordsMax = Math.max(...[...legalForms.keys()].map((name) => name.split(' ').length));

/** One word for words of companies' names that are the same word in several languages or shortened. */
export const synonyms: ReadonlyMap<string, string> = new Map(
  (
    'abdul:abd abdel:abd abdal:abd abdur:abd abdol:abd abdou:abd intl:international internl:international internatl:international int:international mezhdunarodnyy:international bros:brothers mfg:manufacturing ' +
    'manuf:manufacturing mgmt:management svcs:services svc:service tech:technology technologies:technology tekhnologii:technology assoc:associates ' +
    'grp:group gruppe:group groupe:group grupo:group gruppo:group gruppa:group grupp:group hldg:holding hldgs:holding holdings:holding kholding:holding holding:holding ' +
    'natl:national nationale:national nacional:national natsionalnyy:national bk:bank banque:bank banco:bank banca:bank banka:bank bancorp:bank ' +
    'eng:engineering engrg:engineering dev:development develop:development ind:industries inds:industries industry:industries industrie:industries ' +
    'industrial:industries trdg:trading trade:trading torgovyy:trading univ:university universidad:university universite:university universitat:university ' +
    'universita:university universitet:university inst:institute institut:institute instituto:institute istituto:institute fdn:foundation stiftung:foundation ' +
    'fundacion:foundation fondation:foundation fond:foundation fondazione:foundation ent:enterprises enterprise:enterprises st:saint sankt:saint ste:saint ' +
    'shpg:shipping ship:shipping sudokhodstvo:shipping transp:transport transportes:transport insur:insurance ins:insurance dept:department min:ministry ministerio:ministry ' +
    'ministere:ministry ministerium:ministry ministerstvo:ministry gov:government govt:government petrol:petroleum pharm:pharmaceuticals pharma:pharmaceuticals ' +
    'pharmaceutical:pharmaceuticals electr:electronics elec:electronics electronic:electronics co:company cie:company und:and et:and ii:2 iii:3 iv:4 vi:6 vii:7 viii:8 ' +
    'one:1 two:2 three:3 first:1st second:2nd third:3rd north:north nord:north sud:south suid:south'
  )
    .split(' ')
    .map((synonymPair) => synonymPair.split(':') as [string, string]),
);

/** Words that many companies' names have: one of them in common says less than another word. */
export const commonWords = nameWordsOf(
  'international group holding trading services service company national general bank technology industries industry global world management solutions ' +
    'systems shipping investment investments capital development enterprises energy resources import export transport logistics marine maritime ' +
    'construction engineering consulting partners associates trust fund foundation insurance finance financial',
);

/**
 * Names that stand for each other; the first is what they are known by here. A name may stand in several lines. Behind a stroke
 * stand its forms in other languages: people seldom go by those, as they do by short ones.
 */
const nicknameLines = [
  'alexander alex sasha aleksandr alexandre alessandro alejandro iskander sandro alec sacha oleksandr aleksander xander',
  'alexandra sasha alex sandra aleksandra oleksandra sandy',
  'william bill billy will willy liam | wilhelm vilhelm willem | guillaume | guillermo | guglielmo',
  'robert bob bobby rob robbie bert | roberto | rupert',
  'richard rick dick ricky rich | ricardo | riccardo',
  'john jack johnny jon | johann johannes hans johan jan | jean | juan | giovanni | ivan | ioannis | joao | yahya | sean ian',
  'james jim jimmy jamie | jaime diego | giacomo | jacques | jacob yakov yaqub jakob jacobo',
  'joseph joe joey josef jozef iosif yosef yusuf youssef yousef yussuf | jose pepe | giuseppe',
  'michael mike mick mickey mikhail michail mikael mischa misha mykhailo mihail mikkel michal | michel | miguel | michele',
  'david dave davide dawud daoud dawood davyd',
  'thomas tom tommy tomas tommaso tomasz',
  'charles charlie chuck | carlos | carlo | karl carl | karol karel',
  'edward ed eddie ted ned eduard edvard | eduardo | edoardo | edouard',
  'henry harry hank | henri | enrique | enrico | heinrich henrik hendrik heinz',
  'george georgi georgy heorhiy georg | jorge | giorgio | georgios | yuri juri | jerzy | georges | jurgen',
  'peter pete petr pyotr piotr petro petros pieter | pedro | pietro | pierre | butros boutros',
  'paul pauls pavel pawel pavlo | pablo | paolo | paulo',
  'anthony tony antonio antoine anton antonius antony',
  'christopher chris christoph cristobal kit christophe cristoforo krzysztof',
  'christian chris cristian kristian',
  'nicholas nick nikolai nikolay mykola mikolaj nikola nikolaos | nicolas nico | niccolo nicola | klaus',
  'steven steve stephen steffen stefan stephan stepan stevan | esteban | stefano | etienne | istvan',
  'andrew andy drew andrei andrii andriy andrey andrej andrzej | andre | andreas anders | andrea | andres',
  'matthew matt matteo mateo matthias matthieu matvei mateusz mathias',
  'daniel dan danny danilo daniil daniele danylo',
  'benjamin ben benny binyamin beniamino benyamin',
  'samuel sam sammy samuele shmuel',
  'gregory greg grigory gregor gregorio grzegorz hryhoriy',
  'lawrence larry laurence laurent | lorenzo | lars lorenz',
  'frederick fred freddy friedrich frederic frederik fredrik fritz | federico',
  'francis frank | francisco paco pancho | francesco | francois | franz frantisek franciszek',
  'kenneth ken kenny',
  'ronald ron ronnie ronaldo',
  'donald don donnie',
  'timothy tim timmy timofey timoteo',
  'theodore ted teddy theo fyodor fedor teodoro teodor fedir',
  'eugene gene evgeny yevgeny eugenio yevhen evgeni evgueni evgenij jewgeni',
  'dmitry dima dmitri dimitri dmytro dimitrios dmitriy dmitrij mitya',
  'vladimir vova volodymyr wladimir volodya vladimiro',
  'sergei sergey serge sergio serhiy serhii sergej',
  'elizabeth liz beth betty lisa eliza elisabeth elisabetta elizaveta liza lizzie bess yelizaveta elisabet | isabel isabella',
  'margaret maggie meg peggy margarita margherita marguerite greta rita margot małgorzata malgorzata',
  'katherine kate kathy katie catherine katarina ekaterina catalina caterina kathryn karen katya yekaterina kateryna katharina katerina cathy',
  'mary maria marie molly polly maryam miriam mariam mariya marija',
  'anne ann anna annie hannah ana hanna anya nancy anne',
  'helen elena ellen helena yelena olena helene jelena alyona lena eleni nell',
  'susan sue susie susanna suzanne susana zsuzsanna',
  'jennifer jen jenny',
  'patricia pat patty tricia patrizia',
  'patrick pat paddy patricio patrice',
  'barbara barb barbra varvara',
  'deborah deb debbie debra',
  'dorothy dot dolly dorothea dorotea',
  'victoria vicky vika viktoria vittoria viktoriya',
  'victor vic viktor vittorio',
  'natalia natasha natalie nataliya natalya natalija natalie',
  'tatiana tanya tatyana tetiana tetyana',
  'olga olya olha',
  'irina ira iryna irene irena',
  'julia julie yulia giulia yuliya juliya julija iulia',
  'rebecca becky rivka rebekah',
  'sarah sally sara sadie',
  'teresa terry tess theresa therese tereza',
  'edmund ed ned edmond edmundo',
  'abraham abe ibrahim avraham ebrahim ibraheem abram',
  'solomon sol suleiman sulaiman suleyman shlomo salomon soliman',
  'moses moshe musa moussa moises mousa',
  'isaac ishaq yitzhak isak izaak itzhak',
  'ishmael ismail ismael esmail ismaeel',
  'aaron harun haroun aharon aron haroon',
  'jesus isa issa eisa',
  'muhammad mohammed mohamed mehmet mohammad muhammed mahomet mamadou mohamad muhamad muhammet moham md mahmadou mehmed mukhamed magomed',
  'ahmad ahmed ahmet akhmed',
  'osama usama',
  'omar umar omer ömer oumar',
  'uthman osman othman usman ousmane',
  'hussein hossein husayn husain hussain huseyin hossain husein khusein',
  'hasan hassan hassane khasan',
  'ali aly aliy',
  'khalid khaled halid chaled',
  'said saeed sayeed saeid',
  'abdallah abdullah abdulla abdollah abdoulaye abdullahi',
  'qasim kassem qasem kasim qassem ghasem kassim',
  'gaddafi qaddafi kadhafi qadhafi gadhafi kaddafi gathafi',
  'jamal gamal cemal djamal jamaal djemal',
  'jafar jaafar cafer djafar ghafar',
  'leo leon lev leonid leonardo',
  'louis lewis lou | luis | luigi | ludwig ludovic lodewijk',
  'luke lucas luca lukas luc łukasz lukasz',
  'mark marc marco marcus marcos marek markus',
  'martin marty martino marten',
  'philip phil felipe filippo philippe filip philipp filipp',
  'raymond ray ramon raimondo raymundo',
  'simon simone semyon szymon shimon semen',
  'stanley stan stanislav stanislaw',
  'vincent vince vincenzo vicente',
  'walter walt wally gualtiero',
  'albert al bert alberto albrecht adalbert',
  'arthur art arturo artur',
  'alfred al fred alfredo alf',
  'bernard bernie bernardo bernhard bernd bernardino',
  'leonard len lenny leonardo leonhard',
  'jeffrey jeff geoffrey geoff jeffery',
  'gerald jerry gerry gerard gerardo gerhard',
  'douglas doug',
  'zachary zach zack zakaria zakariya zakarya',
  'maximilian max maxim maksim massimo maksym',
  'konstantin kostya constantine kostas costas constantin konstantinos constantino',
  'gennady gena gennadi hennadiy',
  'valery valeri valerii valeriy valerij',
  'anatoly anatoli anatolii anatoliy',
  'xavier javier',
];

/** Forms of one name that stand for each other, and all forms of it. */
export interface NameGroup {
  readonly forms: number;
  readonly family: number;
}

let nicknameGroupsKnown: ReadonlyMap<string, readonly NameGroup[]> | undefined;

/** The groups of names that a name belongs to, by its spelling. */
export function nicknameGroups(spelling: string): readonly NameGroup[] {
  return (nicknameGroupsKnown ??= nicknamesBySpelling()).get(spelling) ?? [];
}

function nicknamesBySpelling(): ReadonlyMap<string, readonly NameGroup[]> {
  const spellingGroups = new Map<string, NameGroup[]>();
  let formCount = 0;
  nicknameLines.forEach((nicknameLine, nameFamily) => {
    for (const nicknamePart of nicknameLine.split(' | ')) {
      formCount++;
      for (const name of new Set(nicknamePart.split(' ').map(spellingOf)))
        spellingGroups.set(name, [...(spellingGroups.get(name) ?? []), { forms: formCount, family: nameFamily }]);
    }
  });
  return spellingGroups;
}
