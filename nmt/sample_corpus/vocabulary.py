"""The vocabulary of the sample corpus' grammar, with inflected forms in both languages."""


def table(text: str, separator: str | None = None) -> list[list[str]]:
    """The cells of each line of a text. `separator`: of cells; by default blanks."""
    return [line.split(separator) for line in text.strip().split("\n")]


VOWELS = "aeiouhéèêàâîôœ"

# English singular, plural, French singular, plural, gender, kind
NOUNS = table(
    """
man men homme hommes m person
woman women femme femmes f person
boy boys garçon garçons m person
girl girls fille filles f person
child children enfant enfants m person
doctor doctors médecin médecins m person
teacher teachers professeur professeurs m person
farmer farmers fermier fermiers m person
actress actresses actrice actrices f person
neighbor neighbors voisin voisins m person
queen queens reine reines f person
king kings roi rois m person
nurse nurses infirmière infirmières f person
student students étudiant étudiants m person
friend friends ami amis m person
dog dogs chien chiens m animal
cat cats chat chats m animal
horse horses cheval chevaux m animal
bird birds oiseau oiseaux m animal
cow cows vache vaches f animal
mouse mice souris souris f animal
house houses maison maisons f place
garden gardens jardin jardins m place
school schools école écoles f place
church churches église églises f place
forest forests forêt forêts f place
street streets rue rues f place
village villages village villages m place
kitchen kitchens cuisine cuisines f place
market markets marché marchés m place
station stations gare gares f place
island islands île îles f place
hotel hotels hôtel hôtels m place
bridge bridges pont ponts m place
book books livre livres m thing
letter letters lettre lettres f thing
apple apples pomme pommes f thing
bread breads pain pains m thing
car cars voiture voitures f thing
bicycle bicycles vélo vélos m thing
hat hats chapeau chapeaux m thing
dress dresses robe robes f thing
key keys clé clés f thing
flower flowers fleur fleurs f thing
picture pictures tableau tableaux m thing
knife knives couteau couteaux m thing
bag bags sac sacs m thing
box boxes boîte boîtes f thing
tree trees arbre arbres m thing
lamp lamps lampe lampes f thing
egg eggs œuf œufs m thing
orange oranges orange oranges f thing
umbrella umbrellas parapluie parapluies m thing
wall walls mur murs m surface
shirt shirts chemise chemises f surface
door doors porte portes f surface
"""
)
# English, French m sg, f sg, m pl, f pl, before or after the noun, form of m sg before a vowel (`-` if after)
ADJECTIVES = table(
    """
small petit petite petits petites before petit
big grand grande grands grandes before grand
old vieux vieille vieux vieilles before vieil
beautiful beau belle beaux belles before bel
new nouveau nouvelle nouveaux nouvelles before nouvel
young jeune jeune jeunes jeunes before jeune
good bon bonne bons bonnes before bon
red rouge rouge rouges rouges after -
black noir noire noirs noires after -
white blanc blanche blancs blanches after -
green vert verte verts vertes after -
happy heureux heureuse heureux heureuses after -
tired fatigué fatiguée fatigués fatiguées after -
strange étrange étrange étranges étranges after -
rich riche riche riches riches after -
quiet calme calme calmes calmes after -
famous célèbre célèbre célèbres célèbres after -
expensive cher chère chers chères after -
"""
)
# French m sg, f sg, m pl, f pl, by the kind of the noun
LIGHT = {
    "surface": ["clair", "claire", "clairs", "claires"],
    "other": ["léger", "légère", "légers", "légères"],
}
# English base, 3sg, past, French 1sg, 3sg, 1pl, 3pl, participle, kinds of objects
VERBS = table(
    """
see sees saw vois voit voyons voient vu any
find finds found trouve trouve trouvons trouvent trouvé any
love loves loved aime aime aimons aiment aimé any
watch watches watched regarde regarde regardons regardent regardé any
look-for looks-for looked-for cherche cherche cherchons cherchent cherché any
hear hears heard entends entend entendons entendent entendu person,animal
help helps helped aide aide aidons aident aidé person
invite invites invited invite invite invitons invitent invité person
follow follows followed suis suit suivons suivent suivi person,animal
feed feeds fed nourris nourrit nourrissons nourrissent nourri animal
buy buys bought achète achète achetons achètent acheté thing,surface
sell sells sold vends vend vendons vendent vendu thing,surface
lose loses lost perds perd perdons perdent perdu thing
hide hides hid cache cache cachons cachent caché thing
open opens opened ouvre ouvre ouvrons ouvrent ouvert place,thing
paint paints painted peins peint peignons peignent peint surface,place
visit visits visited visite visite visitons visitent visité place
leave leaves left quitte quitte quittons quittent quitté place,person
leave leaves left laisse laisse laissons laissent laissé thing
run runs ran dirige dirige dirigeons dirigent dirigé place
know knows knew connais connaît connaissons connaissent connu person,place
"""
)
# Verbs without an object (INTRANSITIVE) and with a clause as their object (THINK): their forms as in VERBS
INTRANSITIVE = table(
    """
sleep sleeps slept dors dort dormons dorment dormi
sing sings sang chante chante chantons chantent chanté
work works worked travaille travaille travaillons travaillent travaillé
run runs ran cours court courons courent couru
dance dances danced danse danse dansons dansent dansé
laugh laughs laughed ris rit rions rient ri
wait waits waited attends attend attendons attendent attendu
"""
)
THINK = table(
    """
think thinks thought pense pense pensons pensent pensé
know knows knew sais sait savons savent su
say says said dis dit disons disent dit
believe believes believed crois croit croyons croient cru
"""
)
PLAY = "play plays played joue joue jouons jouent joué".split()
INSTRUMENTS = [
    ("piano", "du piano"),
    ("guitar", "de la guitare"),
    ("violin", "du violon"),
    ("flute", "de la flûte"),
]
GAMES = [
    ("football", "au football"),
    ("chess", "aux échecs"),
    ("cards", "aux cartes"),
    ("tennis", "au tennis"),
]
# Predicates that cannot be translated word for word. English base, 3sg, past, rest; French 1sg, 3sg, 1pl,
# 3pl, participle; the possessives of je, il, nous, ils, if any; rest
IDIOMS = table(
    """
kick|kicks|kicked|the bucket|casse casse cassons cassent cassé|ma sa notre leur|pipe
have|has|had|a cold|suis est sommes sont été||enrhumé
let|lets|let|the cat out of the bag|vends vend vendons vendent vendu||la mèche
cost|costs|cost|an arm and a leg|coûte coûte coûtons coûtent coûté||les yeux de la tête
pull|pulls|pulled|the wool over our eyes|jette jette jetons jettent jeté||de la poudre aux yeux
""",
    "|",
)
PREPOSITIONS = [
    ("in", "dans"),
    ("under", "sous"),
    ("behind", "derrière"),
    ("near", "près de"),
    ("in front of", "devant"),
    ("next to", "à côté de"),
    ("with", "avec"),
    ("without", "sans"),
]
TIMES = [
    ("today", "aujourd'hui"),
    ("every day", "tous les jours"),
    ("once in a blue moon", "tous les trente-six du mois"),
    ("at night", "la nuit"),
    ("as soon as possible", "dès que possible"),
    ("of course", "bien sûr"),
    ("at once", "tout de suite"),
]
LINKS = [
    ("and", "et"),
    ("but", "mais"),
    ("because", "parce que"),
    ("when", "quand"),
    ("so", "donc"),
    ("while", "pendant que"),
    ("if", "si"),
]
# English, French, index of the French verb form: 0 je, 1 il, 2 nous, 3 ils
PRONOUNS = [("I", "je", 0), ("he", "il", 1), ("she", "elle", 1), ("we", "nous", 2), ("they", "ils", 3)]
OBJECTS = [("him", "le"), ("her", "la"), ("them", "les"), ("us", "nous")]
# Parts of the syllables of invented names
ONSETS = "b br d dr f g gr k l m n p r s st t tr v z".split()
RHYMES = "a al an ar e el en er i il in ir o ol on or u ul un ur".split()
