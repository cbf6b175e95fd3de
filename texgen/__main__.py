from texgen.cli import main

main()
