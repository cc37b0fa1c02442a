# Stands in for Moses' script of that name: says what it was asked.
for my $i (0 .. $#ARGV) { $folder = $ARGV[$i + 1] if $ARGV[$i] eq "--working-dir" }
mkdir $folder;
open(my $out, ">", "$folder/moses.ini");
print $out "$_\n" for @ARGV;
