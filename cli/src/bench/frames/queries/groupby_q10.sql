select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as rows
from x
group by id1, id2, id3, id4, id5, id6
