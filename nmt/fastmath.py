from nmt.compute.matmul import *
from nmt.compute.mixed import *
from nmt.compute.processor import *
from nmt.compute.reduced import *
