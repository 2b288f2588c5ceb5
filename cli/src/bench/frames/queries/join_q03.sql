select x.*, medium.id1 as medium_id1, medium.id4 as medium_id4, medium.id5 as medium_id5, v2
from x
left join medium on x.id2 = medium.id2
